"""Five parties meet at a barrier, and one of them is late each time."""

# first: waiting for work or for other threads in `meet`
# quiet
# not: contended-lock, convoy
import threading, time
barrier = threading.Barrier(5)
def meet(pause_s):
    for _ in range(10):
        time.sleep(pause_s)
        barrier.wait()
threads = [threading.Thread(target=meet, args=(0.08 if number == 0 else 0,)) for number in range(5)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
