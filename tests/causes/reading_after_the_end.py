"""A loop is told of a socket whose peer has closed it, and goes on to read: there is an end to be read each time."""

# first: computing in the event loop itself
# finding: rounds, thread MainThread, line readable, remedy none
# not: loop-stall, short-calls
import asyncio, socket
here, there = socket.socketpair()
here.setblocking(False)
there.close()
def readable():  # readable
    here.recv(100)
async def main():
    asyncio.get_running_loop().add_reader(here, readable)
    await asyncio.sleep(1)
asyncio.run(main())
