"""Three producers put into a queue of twenty items, whose only consumer writes each item to a slow place."""

# first: waiting for work or for other threads in `produce`
# finding: full-queue, line cause, remedy none, threads 3
# not: contended-lock, remedy unsnarl run
import queue, threading, time
items = queue.Queue(20)
def produce():
    for number in range(80):
        items.put(number)  # cause
def write(item):
    time.sleep(0.004)
def consume():
    while (item := items.get()) is not None:
        write(item)
writer = threading.Thread(target=consume, name="writer")
writer.start()
threads = [threading.Thread(target=produce, name=f"producer-{number}") for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
items.put(None)
writer.join()
