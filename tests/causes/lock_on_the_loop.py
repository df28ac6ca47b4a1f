"""A task acquires a lock that a thread holds, on the event loop."""

# first: blocked on a lock in `update`
# finding: loop-stall, thread MainThread, line acquires, remedy none
import asyncio, threading, time
lock, is_held, is_free = threading.Lock(), threading.Event(), threading.Event()
def keep():
    for _ in range(3):
        with lock:
            is_held.set()
            time.sleep(0.15)
        is_free.wait()
        is_free.clear()
thread = threading.Thread(target=keep, name="keeper")
def update():
    lock.acquire()  # acquires
    lock.release()
async def main():
    await asyncio.sleep(0.02)
    thread.start()
    for _ in range(3):
        while not is_held.is_set():
            await asyncio.sleep(0.002)
        is_held.clear()
        update()
        is_free.set()
asyncio.run(main())
thread.join()
