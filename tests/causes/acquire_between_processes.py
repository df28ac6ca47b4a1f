"""Four threads call acquire() of a lock of multiprocessing, which is C code, and keep it while they sleep."""

# first: waiting for a lock in C code in `work`
# finding: shared-lock, line cause, severity severe, remedy none
# not: no-lock-contention, contended-lock
import multiprocessing, threading, time
lock = multiprocessing.get_context("fork").Lock()
def work():
    for _ in range(20):
        lock.acquire()  # cause
        time.sleep(0.02)
        lock.release()
threads = [threading.Thread(target=work, name=f"writer-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
