"""Many tasks sleep at the same time, and none waits for another."""

# first: while tasks wait in `tick`
# quiet
# not: task-waits, loop-stall
import asyncio
async def tick():
    for _ in range(20):
        await asyncio.sleep(0.05)
async def main():
    await asyncio.gather(*(tick() for _ in range(50)))
asyncio.run(main())
