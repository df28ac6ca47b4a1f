"""A task computes and lets the others run in between, as it should."""

# first: computing in `total`
# not: rounds, loop-stall
import asyncio
def total(start):
    return sum(number * number for number in range(start, start + 4_000))
async def compute():
    for start in range(0, 8_000_000, 4_000):
        total(start)
        await asyncio.sleep(0)
async def beat():
    while True:
        await asyncio.sleep(0.01)
async def main():
    beating = asyncio.create_task(beat())
    await compute()
    beating.cancel()
asyncio.run(main())
