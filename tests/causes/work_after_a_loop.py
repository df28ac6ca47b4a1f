"""The main thread runs a short event loop, and sleeps when it has ended: no loop stalls meanwhile."""

# first: sleeping in `rest`
# not: loop-stall
import asyncio, time
def rest():
    for _ in range(4):
        time.sleep(0.2)
async def short():
    await asyncio.sleep(0.1)
asyncio.run(short())
rest()
