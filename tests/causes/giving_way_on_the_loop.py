"""A task waits for another one by giving way without a pause: the loop goes round and never sleeps."""

# finding: rounds, thread MainThread, line spins, remedy none
# not: loop-stall
import asyncio
ready = False
async def wait():
    while not ready:
        await asyncio.sleep(0)  # spins
async def main():
    global ready
    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1)
    ready = True
    await waiting
asyncio.run(main())
