"""Counting in a long list is one C call that keeps the GIL, next to a heartbeat."""

# first: computing in `tally`
# finding: long-hold, thread MainThread, remedy none
# not: convoy
import threading, time
stop = threading.Event()
def heartbeat():
    while not stop.is_set():
        time.sleep(0.005)
thread = threading.Thread(target=heartbeat, name="heartbeat")
one = [0.5] * 12_000_000
thread.start()
def tally():
    for _ in range(4):
        one.count(-1.0)
tally()
stop.set()
thread.join()
