"""A task parses a large document on the event loop."""

# first: idle in the event loop
# finding: loop-stall, thread MainThread, remedy none
import asyncio, json
document = json.dumps([{"id": number, "name": "x" * 20, "values": [1, 2, 3]} for number in range(120_000)])
async def main():
    for _ in range(4):
        await asyncio.sleep(0.2)
        json.loads(document)
asyncio.run(main())
