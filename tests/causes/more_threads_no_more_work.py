"""Twelve threads alternate between short computations and short I/O, and the GIL is full."""

# first: waiting for the GIL
# finding: full-gil, remedy none
import os, threading
def handle():
    null = os.open("/dev/null", os.O_WRONLY)
    for number in range(300):
        sum(range(8_000))
        os.write(null, b"x")
threads = [threading.Thread(target=handle, name=f"handler-{number}") for number in range(12)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
