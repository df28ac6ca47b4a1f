"""An event loop has a small message to answer at all times: it works, and does not spin."""

# not: spinning, polling
import asyncio
async def echo(reader, writer):
    while data := await reader.read(100):
        writer.write(data)
    writer.close()
async def client(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(1200):
        writer.write(b"x")
        await reader.read(100)
    writer.close()
async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(client(port) for _ in range(4)))
    server.close()
asyncio.run(main())
