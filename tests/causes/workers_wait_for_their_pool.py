"""Each worker of a pool waits for a task that only a worker of this pool could run."""

# first: waiting for work or for other threads in `outer`
# finding: pool-waits, line waits, remedy none, workers 2
import concurrent.futures
pool = concurrent.futures.ThreadPoolExecutor(2)
def outer(number):
    inner = pool.submit(abs, number)
    try:
        return inner.result(timeout=0.8)  # waits
    except concurrent.futures.TimeoutError:
        return None
with pool:
    list(pool.map(outer, range(2)))
