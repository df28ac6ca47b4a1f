"""Two threads acquire two locks at the same lines in different orders, and wait for ever."""

# first: blocked on a lock in `transfer`
# finding: stuck, severity severe, remedy none, threads 2
# not: no-lock-contention, contended-lock
import os, threading, time
left, right = threading.Lock(), threading.Lock()
def transfer(source, target):
    source.acquire()
    time.sleep(0.1)
    with target:
        source.release()
for pair in ((left, right), (right, left)):
    threading.Thread(target=transfer, args=pair, daemon=True).start()
time.sleep(1.5)
os._exit(0)
