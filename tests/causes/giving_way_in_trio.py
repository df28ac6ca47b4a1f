"""A task of trio waits for another one by giving way without a pause."""

# needs trio
# finding: rounds, thread MainThread, line spins, remedy none
# not: loop-stall
import trio
ready = False
async def wait():
    while not ready:
        await trio.sleep(0)  # spins
async def main():
    global ready
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        await trio.sleep(1)
        ready = True
trio.run(main)
