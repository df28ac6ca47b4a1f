"""A producer that pauses between its items, for which others wait, does not poll."""

# first: sleeping in `produce`
# not: polling
import queue, threading, time
def produce(items):
    for number in range(300):
        time.sleep(0.003)
        items.put(number)
    items.put(None)
def consume(items):
    while items.get() is not None:
        pass
items = queue.Queue()
threads = [threading.Thread(target=work, args=(items,), name=work.__name__) for work in (produce, consume)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
