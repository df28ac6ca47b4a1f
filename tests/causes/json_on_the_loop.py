"""A task parses a large document on the event loop."""

# first: computing in `main`
# finding: loop-stall, thread MainThread, line parses, remedy none
import asyncio, json
document = json.dumps([{"id": number, "name": "x" * 20, "values": [1, 2, 3]} for number in range(200_000)])
async def main():
    for _ in range(3):
        await asyncio.sleep(0.1)
        json.loads(document)  # parses
asyncio.run(main())
