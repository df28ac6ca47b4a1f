"""A thread tries to acquire a lock again and again, without waiting for it."""

# first: computing in `take`
# finding: spinning, thread taker, line tries, remedy none
import threading, time
lock = threading.Lock()
is_over = False
def keep():
    global is_over
    for _ in range(3):
        with lock:
            time.sleep(0.2)
        time.sleep(0.005)
    is_over = True
def take():
    taken = 0
    while not is_over:
        if lock.acquire(blocking=False):  # tries
            taken += 1
            lock.release()
threads = [threading.Thread(target=keep, name="keeper"), threading.Thread(target=take, name="taker")]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
