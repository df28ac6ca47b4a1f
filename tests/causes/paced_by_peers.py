"""A task with a timeout for each message, which comes long before it: no timer is due, and nobody polls."""

# first: idle in the event loop
# not: polling
import asyncio, socket
async def main():
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    loop = asyncio.get_running_loop()
    async def sends():
        for _ in range(60):
            await asyncio.sleep(0.02)
            await loop.sock_sendall(theirs, b"x")
    sender = asyncio.create_task(sends())
    for _ in range(60):
        await asyncio.wait_for(loop.sock_recv(ours, 1), 5)
    await sender
asyncio.run(main())
