"""One thread takes a lock again and again, and no other wants it."""

# first: computing in `count`
# quiet
# not: contended-lock, futex-storm
import threading
lock = threading.Lock()
def count():
    total = 0
    for _ in range(1_500_000):
        with lock:
            total += 1
count()
