"""Four threads compute with one lock held."""

# first: blocked on a lock in `work`
# finding: contended-lock, remedy none, across_io 0
import threading
lock = threading.RLock()
def work():
    for _ in range(5):
        with lock:
            sum(number for number in range(300_000))
threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
