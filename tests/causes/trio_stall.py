"""A task computes on trio's event loop."""

# needs trio
# first: computing in `add`
# finding: loop-stall, thread MainThread, remedy none
import trio
def add():
    total = 0
    for number in range(6_000_000):
        total += number
async def main():
    for _ in range(3):
        await trio.sleep(0.02)
        add()
trio.run(main)
