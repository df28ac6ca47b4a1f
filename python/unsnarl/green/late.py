"""Modules that are patched when the program imports them, and not before.

- ``ssl``: gevent has to load it to replace classes in it. Loading OpenSSL with its tables costs about ten milliseconds
  and futex calls, and many programs never use it.
- ``multiprocessing.connection``: gevent does not patch it, but makes the sockets of its pipes non-blocking, so that
  reading would fail.

Invariant: every import of such a module, including the first, yields the patched module.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from unsnarl.others import ChangingFinder

PIPE_BUF = 4096
"""Bytes that can be written to a pipe that is ready without blocking (limits.h, pipe(7))."""


def patch_ssl() -> None:
    """Make TLS sockets wait in the hub."""
    monkey: Any = import_module("gevent.monkey")
    monkey.patch_ssl()


def patch_connection() -> None:
    """Make pipes between processes wait in the hub: both of their calls take the system call as a default argument."""
    connection: Any = import_module("multiprocessing.connection")
    connection.Connection._recv.__defaults__ = (_read,)
    connection.Connection._send.__defaults__ = (_write,)


def _read(descriptor: int, size: int) -> bytes:
    socket, os = import_module("gevent.socket"), import_module("os")
    while True:
        socket.wait_read(descriptor)
        try:
            data: bytes = os.read(descriptor, size)
        except BlockingIOError:  # another process has read first
            continue
        return data


def _write(descriptor: int, data: memoryview) -> int:
    socket, os = import_module("gevent.socket"), import_module("os")
    while True:
        socket.wait_write(descriptor)
        try:
            written: int = os.write(descriptor, data[:PIPE_BUF])
        except BlockingIOError:  # another process has written first
            continue
        return written


PATCHES: dict[str, Callable[[], None]] = {"ssl": patch_ssl, "multiprocessing.connection": patch_connection}


def install() -> None:
    """Patch modules on import; those that are loaded already are patched immediately."""
    for name, patch in PATCHES.items():
        if name in sys.modules:
            patch()
    sys.meta_path.insert(0, ChangingFinder(PATCHES, lambda module: PATCHES[module.__name__]()))
