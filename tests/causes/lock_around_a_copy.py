"""Four threads copy a tree with one lock held, in the expression of a return below the `with`."""

# first: blocked on a lock in `snapshot`
# first: computing in `snapshot` (app.py:12)
# finding: contended-lock, remedy none, across_io 0
import copy
import threading
lock = threading.RLock()
tree = {number: [[number, str(number)] for _ in range(20)] for number in range(150)}
def snapshot():
    with lock:
        return copy.deepcopy(tree)
def work():
    for _ in range(24):  # long enough for some samples also where copying is fast
        snapshot()
threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
