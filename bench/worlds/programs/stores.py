"""Connection pools and a database under threads: ``stores.py KIND THREADS OPERATIONS``.

Kinds: ``sqlite`` (each thread has its own connection to one file and reads), ``sqlalchemy`` (a QueuePool of five
connections), ``urllib3`` (a PoolManager of ten against a server in another process). An operation is a query or a
request; OPERATIONS is for each thread.
"""

from __future__ import annotations

import http.server
import importlib
import multiprocessing
import sqlite3
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from counted import report, together

ROWS = 2000


def make_table() -> None:
    """Write the table that is read."""
    with sqlite3.connect("rows.db") as connection:
        connection.execute("create table rows (id integer primary key, name text, size real)")
        connection.executemany("insert into rows values (?, ?, ?)", ((n, f"row {n}", n / 7) for n in range(ROWS)))


def by_sqlite(operations: int) -> Callable[[], None]:
    """Return the work of a thread with a connection of its own."""
    make_table()

    def work() -> None:
        connection = sqlite3.connect("rows.db")
        for number in range(operations):
            connection.execute("select * from rows where id >= ? limit 20", (number % ROWS,)).fetchall()
        connection.close()

    return work


def by_sqlalchemy(operations: int) -> Callable[[], None]:
    """Return the work of a thread that checks connections out of a QueuePool."""
    sqlalchemy: Any = importlib.import_module("sqlalchemy")
    make_table()
    engine = sqlalchemy.create_engine(
        "sqlite:///rows.db", poolclass=sqlalchemy.pool.QueuePool, pool_size=5, connect_args={"check_same_thread": False}
    )
    query = sqlalchemy.text("select * from rows where id = :id")

    def work() -> None:
        for number in range(operations):
            with engine.connect() as connection:
                connection.execute(query, {"id": number % ROWS}).fetchall()

    return work


class Handler(http.server.BaseHTTPRequestHandler):
    """Answer every GET with three bytes over a kept connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"yes")

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


class Server(http.server.ThreadingHTTPServer):
    """Room for all connections at the same time: one that finds none is tried again by the kernel after a second."""

    request_queue_size = 64


def serve(port: Connection) -> None:
    """Serve, and tell the port, until this process is ended."""
    server = Server(("127.0.0.1", 0), Handler)
    port.send(server.server_address[1])
    server.serve_forever()


def by_urllib3(operations: int) -> Callable[[], None]:
    """Return the work of a thread that asks the server through a shared pool."""
    urllib3: Any = importlib.import_module("urllib3")
    mine, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(target=serve, args=(theirs,), daemon=True).start()
    url = f"http://127.0.0.1:{mine.recv()}/"
    pool = urllib3.PoolManager(maxsize=10, block=True)

    def work() -> None:
        for _ in range(operations):
            assert pool.request("GET", url).data == b"yes"

    return work


KINDS = {"sqlite": by_sqlite, "sqlalchemy": by_sqlalchemy, "urllib3": by_urllib3}

if __name__ == "__main__":
    report(int(sys.argv[2]) * int(sys.argv[3]), together([KINDS[sys.argv[1]](int(sys.argv[3]))] * int(sys.argv[2])))
