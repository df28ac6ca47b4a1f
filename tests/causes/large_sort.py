"""The main thread sorts in one C call, next to a heartbeat."""

# first: computing in `rank`
# finding: long-hold, thread MainThread, line sorts, remedy none
# not: convoy
import random, threading, time
stop = threading.Event()
def heartbeat():
    while not stop.is_set():
        time.sleep(0.005)
thread = threading.Thread(target=heartbeat, name="heartbeat")
numbers = [random.random() for _ in range(400_000)]
thread.start()  # not before: the line above is Python code, and the heartbeat would wait for its slices
def rank():
    for _ in range(3):
        sorted(numbers)  # sorts
rank()
stop.set()
thread.join()
