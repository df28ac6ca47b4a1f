"""A task waits for a peer on the event loop."""

# first: in `fetch`
# finding: loop-stall, thread MainThread, line receives, remedy none
import asyncio, socket, threading, time
ours, theirs = socket.socketpair()
def answer():
    for _ in range(4):
        theirs.recv(1)
        time.sleep(0.2)
        theirs.send(b"y")
thread = threading.Thread(target=answer, name="peer")
thread.start()
def fetch():
    ours.send(b"x")
    ours.recv(1)  # receives
async def main():
    for _ in range(4):
        await asyncio.sleep(0.1)
        fetch()
asyncio.run(main())
thread.join()
