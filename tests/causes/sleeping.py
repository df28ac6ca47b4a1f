"""The program sleeps."""

# first: sleeping in `<module>`
# quiet
import time
for _ in range(5):
    time.sleep(0.1)
