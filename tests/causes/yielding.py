"""A thread waits for another one by sleeping for no time at all."""

# first: sleeping in `wait`
# finding: polling, thread MainThread, line pauses, remedy none
import threading, time
ready = threading.Event()
threading.Timer(0.8, ready.set).start()
def wait():
    while not ready.is_set():
        time.sleep(0)  # pauses
wait()
