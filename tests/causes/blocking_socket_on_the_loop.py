"""A task waits for a peer on the event loop."""

# first: waiting for a Unix socket in `fetch`
# finding: loop-stall, thread MainThread, line receives, remedy none
import asyncio, socket, threading, time
ours, theirs = socket.socketpair()
def answer():
    for _ in range(3):
        theirs.recv(1)
        time.sleep(0.15)
        theirs.send(b"y")
thread = threading.Thread(target=answer, name="peer")
thread.start()
def fetch():
    ours.send(b"x")
    ours.recv(1)  # receives
async def main():
    for _ in range(3):
        await asyncio.sleep(0.05)
        fetch()
asyncio.run(main())
thread.join()
