"""The only consumer of a bounded queue ends with an exception, and the producer waits for room that nobody makes."""

# first: waiting for work or for other threads in `produce`
# finding: full-queue, thread MainThread, line puts, remedy none, ended 1
import queue, sys, threading
threading.excepthook = lambda _: None
items = queue.Queue(maxsize=5)
def consume():
    for _ in range(30):
        items.get()
    raise RuntimeError("a bad item")
threading.Thread(target=consume, name="consumer").start()
def produce():
    for item in range(100):
        try:
            items.put(item, timeout=1.5)  # puts
        except queue.Full:
            sys.exit()
produce()
