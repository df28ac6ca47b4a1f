"""A task waits for a future with a timeout of a millisecond, again and again."""

# first: idle in the event loop
# finding: polling, thread MainThread, line polls, remedy none
# not: rounds
import asyncio
async def main():
    loop = asyncio.get_running_loop()
    result = loop.create_future()
    loop.call_later(1, result.set_result, None)
    while not result.done():
        await asyncio.wait([result], timeout=0.001)  # polls
asyncio.run(main())
