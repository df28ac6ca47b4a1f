"""A regular expression backtracks in one C call, while the main thread has a heartbeat."""

# first: computing in `match`
# finding: long-hold, thread matcher, line backtracks, remedy none
# not: convoy
import re, threading, time
stop = threading.Event()
def match():
    for _ in range(3):
        re.match(r"(a+)+$", "a" * 22 + "b")  # backtracks
    stop.set()
thread = threading.Thread(target=match, name="matcher")
thread.start()
while not stop.is_set():
    time.sleep(0.005)
thread.join()
