"""Each of many short threads reads a document of its own first; the thread that starts them waits for it anyway."""

# first: computing in `schema`
# not: remedy unsnarl run, contended-lock
import json, threading, time
own = threading.local()
text = json.dumps([{"number": number} for number in range(60_000)])
def schema():
    if not hasattr(own, "schema"):
        own.schema = json.loads(text)
    return own.schema
def handle():
    len(schema())
    time.sleep(0.002)
for _ in range(10):
    threads = [threading.Thread(target=handle) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
