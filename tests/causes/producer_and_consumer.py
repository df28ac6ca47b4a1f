"""A consumer waits for a slow producer."""

# first: waiting for work or for other threads
# quiet
import queue, threading, time
items = queue.Queue()
def consume():
    while items.get() is not None:
        pass
thread = threading.Thread(target=consume, name="consumer")
thread.start()
for number in range(10):
    time.sleep(0.05)
    items.put(number)
items.put(None)
thread.join()
