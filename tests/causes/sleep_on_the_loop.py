"""A task sleeps on the event loop."""

# first: sleeping in `handler`
# finding: loop-stall, thread MainThread, line sleeps, remedy none
import asyncio, time
async def handler():
    time.sleep(0.15)  # sleeps
async def main():
    for _ in range(3):
        await asyncio.sleep(0.05)
        await handler()
asyncio.run(main())
