"""Four threads take the lock of a file in turn, and keep it while they sleep."""

# first: waiting for the lock of a file in `append`
# finding: shared-lock, line cause, severity severe, remedy none
# not: no-lock-contention, contended-lock
import fcntl, os, tempfile, threading, time
folder = tempfile.TemporaryDirectory()
path = os.path.join(folder.name, "lock")
def append():
    handle = os.open(path, os.O_CREAT | os.O_RDWR)
    for _ in range(20):
        fcntl.flock(handle, fcntl.LOCK_EX)  # cause
        time.sleep(0.02)
        fcntl.flock(handle, fcntl.LOCK_UN)
threads = [threading.Thread(target=append, name=f"writer-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
