"""A consumer waits at a queue of C code for a producer that sleeps."""

# first: waiting for work or for other threads in `consume`
# quiet
# not: contended-lock
import queue, threading, time
items = queue.SimpleQueue()
def consume():
    while items.get() is not None:
        pass
thread = threading.Thread(target=consume, name="consumer")
thread.start()
def produce():
    for number in range(10):
        time.sleep(0.06)
        items.put(number)
    items.put(None)
produce()
thread.join()
