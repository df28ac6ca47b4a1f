"""Calls in threads wait for one of the four tokens of anyio's limiter, as the views of a web framework do."""

# needs anyio
# first: sleeping in `view`
# not: task-waits
# finding: full-pool, thread AnyIO worker thread, line waits, remedy none, workers 4
import anyio, functools, time
def view():
    time.sleep(0.05)  # waits
async def main():
    limiter = anyio.CapacityLimiter(4)
    async with anyio.create_task_group() as group:
        for _ in range(60):
            group.start_soon(functools.partial(anyio.to_thread.run_sync, view, limiter=limiter))
anyio.run(main)
