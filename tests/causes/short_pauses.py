"""A thread pauses for 0.3 ms after each line, and then waits for a slice of 20 ms of a thread that computes."""

# first: computing in `burn`
# finding: convoy, thread writer, remedy unsnarl run
import os, sys, threading, time
sys.setswitchinterval(0.02)
stop = threading.Event()
end, begin = os.pipe()
def burn():
    total = 0
    while not stop.is_set():
        total += 1
def write():
    for number in range(60):
        os.write(begin, b"%d\n" % number)
        time.sleep(0.0003)
threads = [threading.Thread(target=burn, name="burner"), threading.Thread(target=write, name="writer")]
for thread in threads:
    thread.start()
threads[1].join()
stop.set()
threads[0].join()
