"""A task that looks for something gives way at several lines: each of them is seen in a part of the rounds."""

# finding: rounds, thread MainThread, severity severe, remedy none
# not: loop-stall, short-calls
import asyncio
ready = False
async def wait():
    while not ready:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
async def main():
    global ready
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1)
    ready = True
    await waiting
asyncio.run(main())
