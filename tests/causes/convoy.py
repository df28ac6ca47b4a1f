"""A thread returns from a short sleep again and again, and waits for a slice of a thread that computes."""

# first: computing in `burn`
# finding: convoy, thread health, remedy unsnarl run
import threading, time
stop = threading.Event()
def burn():
    total = 0
    while not stop.is_set():
        total += 1
def check():
    for _ in range(60):
        time.sleep(0.001)
threads = [threading.Thread(target=burn, name="burner"), threading.Thread(target=check, name="health")]
for thread in threads:
    thread.start()
threads[1].join()
stop.set()
threads[0].join()
