"""An event loop runs hundreds of thousands of short tasks without a pause: it is busy, and never stands still."""

# first: computing in `main`
# not: loop-stall
import asyncio
async def tiny():
    pass
async def main():
    for _ in range(150):
        await asyncio.gather(*(tiny() for _ in range(1000)))
asyncio.run(main())
