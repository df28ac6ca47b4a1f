"""Tasks sleep as tasks should."""

# first: idle in the event loop
# quiet
import asyncio
async def tick():
    for _ in range(12):
        await asyncio.sleep(0.05)
async def main():
    await asyncio.gather(tick(), tick(), tick())
asyncio.run(main())
