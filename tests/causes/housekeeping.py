"""A thread collects a large heap now and then: all others wait through each collection."""

# finding: long-hold, thread housekeeper, line cause, severity severe, remedy none
# not: convoy, contended-lock
import gc, threading, time
heap = [{"number": number, "list": [number]} for number in range(800_000)]
def housekeep():
    for _ in range(8):
        time.sleep(0.15)
        gc.collect()  # cause
thread = threading.Thread(target=housekeep, name="housekeeper")
thread.start()
while thread.is_alive():
    time.sleep(0.003)
