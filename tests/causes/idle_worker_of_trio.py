"""A thread of trio's runs short calls one after another, and waits for the next one in between."""

# needs trio
# not: contended-lock, lock-waits, polling
import time
import trio
async def main():
    for _ in range(12):
        await trio.to_thread.run_sync(time.sleep, 0.02)
        await trio.sleep(0.1)
trio.run(main)
