"""Each request is handled with a sleep, and a next request is always there: the loop never waits for one."""

# first: sleeping in `retry`
# finding: loop-stall, thread MainThread, line cause, severity severe, remedy none
import asyncio, time
def retry():
    time.sleep(0.08)  # cause
async def handle(reader, writer):
    await reader.readline()
    retry()
    writer.write(b"done\n")
    writer.close()
async def request(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"work\n")
    await reader.readline()
    writer.close()
async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.gather(*(request(port) for _ in range(12)))
    server.close()
asyncio.run(main())
