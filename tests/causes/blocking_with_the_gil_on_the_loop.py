"""A callback calls C code that blocks and keeps the GIL: the loop lacks no processor, and stalls."""

# finding: loop-stall, thread MainThread, line CALL, severity severe
# not: no-processor

import asyncio
import ctypes

keeping = ctypes.PyDLL(None)  # its functions are called with the GIL


async def main() -> None:
    for _ in range(12):
        keeping.usleep(150_000)  # CALL
        await asyncio.sleep(0)


asyncio.run(main())
