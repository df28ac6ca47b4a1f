"""A loop is told of each socket that has room to write, which it nearly always has: it goes round without a pause."""

# first: computing in the event loop itself
# finding: rounds, thread MainThread, line writable, remedy none
# not: loop-stall, short-calls
import asyncio, socket
here, there = socket.socketpair()
here.setblocking(False)
count = 0
def writable():  # writable
    global count
    count += 1
async def main():
    asyncio.get_running_loop().add_writer(here, writable)
    await asyncio.sleep(1)
asyncio.run(main())
