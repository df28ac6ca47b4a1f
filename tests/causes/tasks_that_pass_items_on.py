"""Two tasks pass single items on through queues: the loop does about as much as they do, and nobody looks for nothing."""

# quiet
# not: loop-stall
import asyncio
async def echo(here, there):
    while (item := await here.get()) is not None:
        await there.put(item)
    await there.put(None)
async def main():
    here, there = asyncio.Queue(1), asyncio.Queue(1)
    other = asyncio.create_task(echo(here, there))
    for number in range(100_000):
        await here.put(number)
        await there.get()
    await here.put(None)
    await other
asyncio.run(main())
