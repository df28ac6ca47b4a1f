"""Two threads acquire two locks in different orders, and give up after a while."""

# first: blocked on a lock in `transfer`
# finding: contended-lock, line tries, remedy none
import threading, time
left, right = threading.Lock(), threading.Lock()
def transfer(source, target):
    for _ in range(3):
        with source:
            time.sleep(0.05)
            if target.acquire(timeout=0.3):  # tries
                target.release()
threads = [
    threading.Thread(target=transfer, args=(left, right), name="one"),
    threading.Thread(target=transfer, args=(right, left), name="two"),
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
