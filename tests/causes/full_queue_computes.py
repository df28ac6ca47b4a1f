"""Four producers put into a full queue, whose only consumer computes."""

# first: waiting for work or for other threads in `produce`
# not: remedy unsnarl run
import json, queue, threading
items = queue.Queue(4)
document = {"rows": [{"number": number, "text": str(number)} for number in range(3000)]}
def produce():
    for _ in range(60):
        items.put(document)
def encode(item):
    return json.dumps(item)
def consume():
    for _ in range(240):
        encode(items.get())
threads = [threading.Thread(target=produce, name=f"producer-{number}") for number in range(4)]
threads.append(threading.Thread(target=consume, name="writer"))
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
