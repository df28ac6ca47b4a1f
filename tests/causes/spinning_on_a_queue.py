"""A thread asks a queue without a pause."""

# first: computing in `consume`
# finding: spinning, thread consumer, line asks, remedy none
import queue, threading, time
items = queue.Queue()
stop = False
def consume():
    while not stop:
        try:
            items.get_nowait()  # asks
        except queue.Empty:
            pass
thread = threading.Thread(target=consume, name="consumer")
thread.start()
for number in range(40):
    time.sleep(0.02)
    items.put(number)
stop = True
thread.join()
