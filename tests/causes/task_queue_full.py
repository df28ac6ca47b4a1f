"""Tasks put into a full asyncio.Queue, whose only consumer is slow."""

# first: while tasks wait in `write`
# finding: task-waits, thread MainThread, line puts, remedy none
import asyncio
async def read(queue):
    for number in range(12):
        await queue.put(number)  # puts
async def write(queue, count):
    for _ in range(count):
        await queue.get()
        await asyncio.sleep(0.02)
async def main():
    queue = asyncio.Queue(2)
    await asyncio.gather(write(queue, 48), *(read(queue) for _ in range(4)))
asyncio.run(main())
