"""Modules that are patched when the program imports them, and not before.

``ssl``: gevent replaces classes of it and has to load it for that, OpenSSL with its
tables, some ten milliseconds and futex calls, for a program that may never ask.
``multiprocessing.connection``: gevent leaves it alone, and makes the sockets that
its pipes are made of non-blocking, so that reading would fail.

Invariant: whoever imports one of them gets the patched module, the first one included.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from unsnarl.others import ChangingFinder

PIPE_BUF = 4096
"""Bytes that a pipe which is ready takes without blocking (limits.h, pipe(7))."""


def patch_ssl() -> None:
    """Let TLS sockets wait in the hub."""
    monkey: Any = import_module("gevent.monkey")
    monkey.patch_ssl()


def patch_connection() -> None:
    """Let the pipes between processes wait in the hub: both of their calls have the system's as a default."""
    connection: Any = import_module("multiprocessing.connection")
    connection.Connection._recv.__defaults__ = (_read,)
    connection.Connection._send.__defaults__ = (_write,)


def _read(descriptor: int, size: int) -> bytes:
    socket, os = import_module("gevent.socket"), import_module("os")
    while True:
        socket.wait_read(descriptor)
        try:
            data: bytes = os.read(descriptor, size)
        except BlockingIOError:  # another process was faster
            continue
        return data


def _write(descriptor: int, data: memoryview) -> int:
    socket, os = import_module("gevent.socket"), import_module("os")
    while True:
        socket.wait_write(descriptor)
        try:
            written: int = os.write(descriptor, data[:PIPE_BUF])
        except BlockingIOError:  # another process was faster
            continue
        return written


PATCHES: dict[str, Callable[[], None]] = {"ssl": patch_ssl, "multiprocessing.connection": patch_connection}


def install() -> None:
    """Wait for the imports; what is loaded already is patched at once."""
    for name, patch in PATCHES.items():
        if name in sys.modules:
            patch()
    sys.meta_path.insert(0, ChangingFinder(PATCHES, lambda module: PATCHES[module.__name__]()))
