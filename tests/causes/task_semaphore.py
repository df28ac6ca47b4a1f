"""Sixty tasks share the two permits of an asyncio.Semaphore."""

# first: while tasks wait in `query`
# finding: task-waits, thread MainThread, line waits, remedy none, most 58
import asyncio
async def query(permits):
    async with permits:
        await asyncio.sleep(0.03)  # waits
async def main():
    permits = asyncio.Semaphore(2)
    await asyncio.gather(*(query(permits) for _ in range(60)))
asyncio.run(main())
