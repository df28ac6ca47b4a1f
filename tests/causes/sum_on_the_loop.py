"""A task computes in Python on the event loop."""

# first: computing in `add`
# finding: loop-stall, thread MainThread, remedy none
import asyncio
def add():
    total = 0
    for number in range(6_000_000):
        total += number
async def main():
    for _ in range(3):
        await asyncio.sleep(0.02)
        add()
asyncio.run(main())
