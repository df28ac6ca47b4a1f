"""A task makes blocking calls on the event loop, and ends the program from there: its last round ends with no return."""

# first: sleeping in `fetch`
# finding: loop-stall, thread MainThread, line waits, remedy none
import asyncio, sys, time
def fetch():
    time.sleep(0.2)  # waits
async def main():
    for _ in range(5):
        fetch()
    sys.exit()
asyncio.run(main())
