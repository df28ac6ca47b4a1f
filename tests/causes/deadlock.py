"""Two threads acquire two locks in different orders and wait for ever; the program ends without them."""

# first: blocked on a lock in `transfer`
# finding: stuck, severity severe, remedy none, threads 2
# not: no-lock-contention, contended-lock
import os, threading, time
accounts = threading.Lock()
journal = threading.Lock()
def transfer():
    with accounts:
        time.sleep(0.1)
        with journal:
            pass
def close():
    with journal:
        time.sleep(0.1)
        with accounts:
            pass
threads = [threading.Thread(target=target, daemon=True) for target in (transfer, close)]
for thread in threads:
    thread.start()
time.sleep(1.5)
os._exit(0)
