"""Calls in threads wait for one of the two tokens of a trio limiter."""

# needs trio
# first: sleeping in `query`
# not: task-waits
# finding: full-pool, line waits, remedy none, workers 2
import functools, time, trio
def query():
    time.sleep(0.1)  # waits
async def main():
    limiter = trio.CapacityLimiter(2)
    async with trio.open_nursery() as nursery:
        for _ in range(30):
            nursery.start_soon(functools.partial(trio.to_thread.run_sync, query, limiter=limiter))
trio.run(main)
