"""A task of trio waits for room in a channel, whose receiver is slower."""

# needs trio
# first: idle in the event loop while tasks wait in `consume`
# finding: task-waits, line SEND, remedy none
import trio
async def produce(channel):
    async with channel:
        for number in range(150):
            await channel.send(number)  # SEND
async def consume(channel):
    async with channel:
        async for _ in channel:
            await trio.sleep(0.01)
async def main():
    sender, receiver = trio.open_memory_channel(0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(produce, sender)
        nursery.start_soon(consume, receiver)
trio.run(main)
