"""An echo greenlet of gevent beside CPU-bound greenlets that give way after each unit of work.

Its words are COUNTS NUMBER.
"""

from __future__ import annotations

import sys

import gevent
import gevent.event
import gevent.socket
import parts


def compute(path: str, index: int) -> None:
    """Compute and give way after each unit."""
    for _ in parts.units(path, index):
        gevent.sleep(0)


def main(path: str, number: str) -> None:
    """Start the greenlets."""
    sock = gevent.socket.socket(gevent.socket.AF_INET, gevent.socket.SOCK_DGRAM)
    sock.bind(("127.0.0.1", 0))
    gevent.spawn(parts.echo, sock)
    for index in range(int(number)):
        gevent.spawn(compute, path, index)
    parts.announce(sock)
    gevent.event.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
