"""Threads poll a queue with short timeouts."""

# first: waiting for work or for other threads in `consume`
# finding: polling, line polls, remedy none
# not: futex-storm
import queue, threading, time
items = queue.Queue()
stop = threading.Event()
def consume():
    while not stop.is_set():
        try:
            items.get(timeout=0.001)  # polls
        except queue.Empty:
            pass
threads = [threading.Thread(target=consume, name=f"consumer-{number}") for number in range(3)]
for thread in threads:
    thread.start()
time.sleep(0.6)
stop.set()
for thread in threads:
    thread.join()
