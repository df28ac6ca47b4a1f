"""The main thread multiplies huge integers, one C call each, next to a heartbeat."""

# first: computing in `<module>`
# finding: long-hold, thread MainThread, line multiplies, remedy none
# not: convoy
import threading, time
stop = threading.Event()
def heartbeat():
    while not stop.is_set():
        time.sleep(0.005)
thread = threading.Thread(target=heartbeat, name="heartbeat")
thread.start()
number = 3 ** 700_000
for _ in range(3):
    number * number  # multiplies
stop.set()
thread.join()
