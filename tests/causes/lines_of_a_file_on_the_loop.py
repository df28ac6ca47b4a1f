"""An asynchronous generator yields the lines of a large file, and never to the loop."""

# finding: loop-stall, thread MainThread, line cause, severity severe, remedy none
import asyncio, io
text = "".join(f"line {number}\n" for number in range(900_000))
async def lines():
    for line in io.StringIO(text):
        yield line
async def count():
    total = 0
    async for line in lines():  # cause
        total += len(line)
    return total
async def beat():
    while True:
        await asyncio.sleep(0.01)
async def main():
    beating = asyncio.create_task(beat())
    for _ in range(4):
        await asyncio.sleep(0.03)
        await count()
    beating.cancel()
asyncio.run(main())
