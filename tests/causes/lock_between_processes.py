"""Three processes share a lock of multiprocessing, and hold it while they sleep."""

# first: waiting for a child process in `<module>`
# not: contended-lock
import multiprocessing, time
def work(lock):
    for _ in range(6):
        with lock:
            time.sleep(0.05)
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    lock = context.Lock()
    children = [context.Process(target=work, args=(lock,)) for _ in range(3)]
    for child in children:
        child.start()
    for child in children:
        child.join()
