"""The workers of a pool compute: the GIL is full, and more workers would add nothing."""

# first: computing in `add`
# not: full-pool
import concurrent.futures
def add(_):
    total = 0
    for number in range(300_000):
        total += number
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(pool.map(add, range(60)))
