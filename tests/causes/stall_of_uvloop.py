"""A callback on uvloop, whose loop is in C, parses a large document."""

# needs uvloop
# first: computing in `parse`
# finding: loop-stall, thread MainThread, line cause, severity severe, remedy none
import asyncio, json
import uvloop
document = json.dumps([{"number": number, "text": str(number)} for number in range(500_000)])
def parse():
    return json.loads(document)  # cause
async def beat():
    while True:
        await asyncio.sleep(0.01)
async def main():
    beating = asyncio.create_task(beat())
    for _ in range(6):
        await asyncio.sleep(0.05)
        parse()
    beating.cancel()
with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
