"""Two threads hold one lock across a sleep."""

# first: blocked on a lock in `work`
# finding: contended-lock, line sleeps, remedy none, across_io 1
import threading, time
lock = threading.Lock()
def work():
    for _ in range(8):
        with lock:
            time.sleep(0.03)  # sleeps
threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
