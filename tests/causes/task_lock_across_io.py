"""Eight tasks share an asyncio.Lock, and each holds it while it waits for an answer."""

# first: while tasks wait in `ask`
# finding: task-waits, thread MainThread, line receives, remedy none
# not: no-lock-contention
import asyncio
async def serve(reader, writer):
    while await reader.readline():
        await asyncio.sleep(0.02)
        writer.write(b"answer\n")
    writer.close()
async def ask(lock, reader, writer):
    for _ in range(8):
        async with lock:
            writer.write(b"question\n")
            await reader.readline()  # receives
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    lock = asyncio.Lock()
    await asyncio.gather(*(ask(lock, reader, writer) for _ in range(8)))
    writer.close()
    server.close()
asyncio.run(main())
