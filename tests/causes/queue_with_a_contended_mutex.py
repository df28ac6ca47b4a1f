"""Producers put into a queue without bounds while a thread that holds its mutex computes: no queue is full."""

# not: full-queue
import queue, threading, time
items = queue.Queue()
def look():
    for _ in range(10):
        with items.mutex:
            time.sleep(0.05)
def produce():
    for number in range(20):
        items.put(number)
threads = [threading.Thread(target=look, name="looker")]
threads += [threading.Thread(target=produce, name=f"producer-{number}") for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
