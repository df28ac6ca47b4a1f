"""Threads pay into one account, and each sleeps shortly with the account's lock: that is no polling."""

# first: blocked on a lock in `pay`
# finding: contended-lock, line sleeps, remedy none, across_io 1
# not: polling
import threading, time
lock = threading.Lock()
def pay():
    for _ in range(400):
        with lock:
            time.sleep(0.0005)  # sleeps
threads = [threading.Thread(target=pay, name=f"payer-{number}") for number in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
