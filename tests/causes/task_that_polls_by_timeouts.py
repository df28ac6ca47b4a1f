"""A task asks a queue with a timeout of two milliseconds, and gets nothing nearly each time."""

# first: idle in the event loop
# finding: polling, thread MainThread, line polls, remedy none
import asyncio
async def main():
    queue = asyncio.Queue()
    asyncio.get_running_loop().call_later(1, queue.put_nowait, 1)
    while True:
        try:
            await asyncio.wait_for(queue.get(), 0.002)  # polls
            return
        except TimeoutError:
            pass
asyncio.run(main())
