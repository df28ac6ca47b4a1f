"""Threads run a loop each, one after the other; in the second one, tasks wait for a lock that one holds across I/O."""

# finding: task-waits, thread second
import asyncio, threading
async def ask(lock):
    async with lock:
        await asyncio.sleep(0.05)
async def crowd():
    lock = asyncio.Lock()
    await asyncio.gather(*(ask(lock) for _ in range(12)))
async def idle():
    await asyncio.sleep(0.1)
for name, main in (("first", idle), ("second", crowd), ("third", idle)):
    thread = threading.Thread(target=lambda main=main: asyncio.run(main()), name=name)
    thread.start()
    thread.join()
