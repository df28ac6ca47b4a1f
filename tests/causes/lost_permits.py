"""A permit is not given back where the work fails, so soon there is none, and each wait ends with its timeout."""

# first: blocked on a lock in `call`
# finding: contended-lock, severity severe, remedy none
# not: polling, remedy unsnarl run --patch
import threading, time
permits = threading.Semaphore(3)
def call(number):
    if not permits.acquire(timeout=0.3):
        return
    if number % 2:
        return  # the release is forgotten
    time.sleep(0.02)
    permits.release()
def work(first):
    for number in range(5):
        call(first + number)
threads = [threading.Thread(target=work, args=(number,), name=f"worker-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
