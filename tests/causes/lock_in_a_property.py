"""A property of a class holds a lock of all its instances while it sleeps."""

# first: blocked on a lock in `Settings.rate`
# finding: contended-lock, line cause, across_io 1, severity severe, remedy none
import threading, time
class Settings:
    _lock = threading.Lock()

    @property
    def rate(self):
        with self._lock:
            time.sleep(0.004)  # cause
            return 3
def work():
    for _ in range(50):
        Settings().rate
threads = [threading.Thread(target=work, name=f"worker-{number}") for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
