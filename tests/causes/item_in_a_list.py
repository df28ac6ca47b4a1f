"""Each request looks for an item in a long list, beside a thread that beats: the operator keeps the GIL."""

# first: computing in `is_known` (app.py:8)
# not: contended-lock
import threading, time
known = list(range(300_000))
def is_known(item):
    return item in known  # cause
def beat():
    while not done.wait(0.02):
        pass
done = threading.Event()
beating = threading.Thread(target=beat, name="beat")
beating.start()
ends_s = time.monotonic() + 2
while time.monotonic() < ends_s:
    is_known(-1)
done.set()
beating.join()
