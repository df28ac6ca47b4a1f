"""A callback unpacks a large body; the call releases the GIL for a part of its time, but not the loop."""

# finding: loop-stall, thread MainThread, line cause, severity severe
import asyncio, zlib
body = zlib.compress(b"a text that repeats itself, with a number 12345 " * 4_000_000, 1)
def unpack():
    return zlib.decompress(body)  # cause
async def beat():
    while True:
        await asyncio.sleep(0.005)
async def main():
    beating = asyncio.create_task(beat())
    for _ in range(8):
        await asyncio.sleep(0.02)
        unpack()
    beating.cancel()
asyncio.run(main())
