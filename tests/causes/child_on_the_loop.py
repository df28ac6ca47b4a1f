"""A task waits for a child process on the event loop."""

# first: waiting for a child process in `convert`
# finding: loop-stall, thread MainThread, line waits, remedy none
import asyncio, subprocess
def convert():
    subprocess.run(["sleep", "0.15"])  # waits
async def main():
    for _ in range(3):
        await asyncio.sleep(0.02)
        convert()
asyncio.run(main())
