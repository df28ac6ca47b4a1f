"""Two threads of multiprocessing's pool are busy, mostly asleep: its own queues are no locks."""

# first: sleeping in `fetch`
# finding: full-pool, line waits, remedy none, workers 2
# not: contended-lock, stuck
from multiprocessing.pool import ThreadPool
import time
def fetch(number):
    time.sleep(0.1)  # waits
    return number
with ThreadPool(2) as pool:
    print(len(pool.map(fetch, range(30))))
