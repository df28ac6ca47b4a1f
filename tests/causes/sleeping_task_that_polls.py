"""A task looks every millisecond whether something is done: the loop wakes up for it, and finds nothing."""

# first: idle in the event loop while tasks wait in `waits`
# finding: polling, thread MainThread, line polls, remedy none
# not: rounds
import asyncio
async def waits(work):
    while not work.done():
        await asyncio.sleep(0.001)  # polls
async def main():
    await waits(asyncio.create_task(asyncio.sleep(1)))
asyncio.run(main())
