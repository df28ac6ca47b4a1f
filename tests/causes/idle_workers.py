"""Workers of a pool sleep, and wait for work."""

# first: waiting for work or for other threads
# quiet
import concurrent.futures, time
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(time.sleep, [0.2] * 8))
