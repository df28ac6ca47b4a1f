"""A thread polls an event with short timeouts."""

# first: waiting for work or for other threads in `watch`
# finding: polling, thread watcher, line polls, remedy none
import threading, time
stop = threading.Event()
def watch():
    while not stop.wait(0.002):  # polls
        pass
thread = threading.Thread(target=watch, name="watcher")
thread.start()
time.sleep(0.6)
stop.set()
thread.join()
