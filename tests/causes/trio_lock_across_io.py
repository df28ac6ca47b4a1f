"""Tasks of trio wait for a lock that is held across an await."""

# needs trio
# first: idle in the event loop while tasks wait in `worker`
# finding: task-waits, line IO, severity severe, remedy none
import trio
async def worker(lock):
    for _ in range(5):
        async with lock:
            await trio.sleep(0.03)  # IO
async def main():
    lock = trio.Lock()
    async with trio.open_nursery() as nursery:
        for _ in range(10):
            nursery.start_soon(worker, lock)
trio.run(main)
