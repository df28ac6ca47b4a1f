"""Four threads compute in Python."""

# first: waiting for the GIL
# finding: cpu-bound, remedy none
# not: convoy
import threading
def burn():
    total = 0
    for number in range(2_000_000):
        total += number
threads = [threading.Thread(target=burn, name=f"burn-{number}") for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
