"""Eight handlers wait for the only worker of a pool."""

# first: waiting for work or for other threads in `handle`
# finding: full-pool, thread database_0, line waits, remedy none, workers 1
import concurrent.futures, threading, time
pool = concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="database")
def query():
    time.sleep(0.02)  # waits
def handle():
    for _ in range(6):
        pool.submit(query).result()
threads = [threading.Thread(target=handle, name=f"handler-{number}") for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
pool.shutdown()
