"""A web server whose pool of threads takes connections from a queue, with optional CPU-bound threads.

One request per connection, as ``ab`` sends them: every request passes through the queue, and so through
the library's primitives. The server prints its port and serves until it is killed; no thread waits for a
pipe, which would block all green threads.
"""

from __future__ import annotations

import importlib
import socket
import threading
from typing import Any

import measured
import pairs

WORKERS = 12
BACKLOG = 256
BODY = b'{"message": "hello"}'
HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
ANSWER = HEAD % len(BODY) + BODY
END_OF_HEAD = b"\r\n\r\n"


class Connections:
    """A queue of connections: a list, and the library's condition around it."""

    def __init__(self, locks: Any, conditions: Any) -> None:
        """Create an empty queue with a lock and a condition of these libraries."""
        self._waiting: list[socket.socket] = []
        self._condition = conditions.Condition(locks.Lock())

    def put(self, connection: socket.socket) -> None:
        """Hand a connection to a worker."""
        with self._condition:
            self._waiting.append(connection)
            self._condition.notify()

    def get(self) -> socket.socket:
        """Wait for a connection."""
        with self._condition:
            while not self._waiting:
                self._condition.wait()
            return self._waiting.pop(0)


def answer(connection: socket.socket) -> None:
    """Read one request and answer it."""
    with connection:
        data = b""
        while END_OF_HEAD not in data:
            more = connection.recv(4096)
            if not more:
                return
            data += more
        connection.sendall(ANSWER)


def work(connections: Connections) -> None:
    """Answer requests for ever; a client that disconnects early is no error."""
    while True:
        try:
            answer(connections.get())
        except OSError:
            continue


def accept(listener: socket.socket, connections: Connections) -> None:
    """Accept connections for ever."""
    while True:
        connection, _ = listener.accept()
        connections.put(connection)


def main() -> None:
    """Serve for ever."""
    parser = measured.parser(__doc__)
    parser.add_argument("--hogs", type=int, default=0)
    parser.add_argument("--locks", metavar="MODULE", help="whose lock is used, if not the library's")
    parser.add_argument("--conditions", metavar="MODULE", help="whose condition is used, if not the library's")
    arguments = parser.parse_args()
    measured.begin(arguments)
    names = (arguments.locks or arguments.library, arguments.conditions or arguments.library)
    connections = Connections(*map(importlib.import_module, names))
    listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
    for _ in range(WORKERS):
        threading.Thread(target=work, args=(connections,), daemon=True).start()
    hogs = [pairs.Hog() for _ in range(arguments.hogs)]
    measured.print_figures(port=listener.getsockname()[1], hogs=len(hogs))
    accept(listener, connections)


if __name__ == "__main__":
    main()
