"""An echo on an asyncio loop beside CPU-bound tasks that give way after each unit of work: the best case of a loop.

Its words are COUNTS NUMBER.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import parts


class Echo(asyncio.DatagramProtocol):
    """Answers every datagram with itself."""

    def connection_made(self, transport: Any) -> None:
        """Keep the transport."""
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str | Any, int]) -> None:
        """Answer."""
        self._transport.sendto(data, addr)


async def compute(path: str, index: int) -> None:
    """Compute and give way after each unit."""
    for _ in parts.units(path, index):
        await asyncio.sleep(0)


async def serve(path: str, number: int) -> None:
    """Start the echo and the tasks, which run until the process ends."""
    sock = parts.listening()
    await asyncio.get_running_loop().create_datagram_endpoint(Echo, sock=sock)
    tasks = [asyncio.create_task(compute(path, index)) for index in range(number)]
    parts.announce(sock)
    await asyncio.Event().wait()
    await asyncio.gather(*tasks)


def main(path: str, number: str) -> None:
    """Run the loop."""
    asyncio.run(serve(path, int(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
