"""A program without a fault: a thread looks after something a few times a second, the main thread sleeps."""

# first: waiting for work or for other threads in `look_after`
# not: polling, contended-lock, convoy
# quiet
import threading, time
stop = threading.Event()
def look_after():
    while not stop.wait(0.3):
        pass
thread = threading.Thread(target=look_after, name="scheduler")
thread.start()
time.sleep(1.5)
stop.set()
thread.join()
