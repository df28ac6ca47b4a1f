"""Six handlers wait for the only worker of a pool, which computes: with the GIL sooner each would only wait sooner."""

# first: waiting for work or for other threads in `handle`
# not: remedy unsnarl run, remedy unsnarl run --patch
import concurrent.futures, threading
pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="renderer")
def render():
    return sum(number * number for number in range(60_000))
def handle():
    for _ in range(10):
        pool.submit(render).result()
threads = [threading.Thread(target=handle, name=f"handler-{number}") for number in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
pool.shutdown()
