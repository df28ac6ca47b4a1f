"""Other libraries for synchronisation between processes, behind the interface of a multiprocessing context.

`posix_ipc` has named kernel semaphores, and a lock is one of value 1; `faster-fifo` has a queue in shared memory.
Neither has events, conditions or barriers. Invariant: everything a peer lacks is taken from multiprocessing, so that
all variants start their processes in the same way.
"""

from __future__ import annotations

import importlib
import multiprocessing
from typing import Any

FORK: Any = multiprocessing.get_context("fork")

RING_BYTES = 1_000_000
"""The size of a queue in faster-fifo's documentation."""


class Peer:
    """A context of multiprocessing with the classes of one library in place of its own."""

    Process = FORK.Process
    Event = FORK.Event
    Semaphore = FORK.Semaphore

    def __init__(self, library: str) -> None:
        self._library = importlib.import_module(library)


class PosixIpc(Peer):
    """Semaphores of posix_ipc; each name is unlinked immediately after it is created."""

    def __init__(self) -> None:
        super().__init__("posix_ipc")

    def Semaphore(self, value: int = 1) -> Any:  # noqa: N802 - the standard library's name
        """Make a semaphore that children inherit by fork."""
        made = self._library.Semaphore(None, self._library.O_CREX, initial_value=value)
        made.unlink()
        return made

    def Lock(self) -> Any:  # noqa: N802
        """Make a semaphore of value 1."""
        return self.Semaphore(1)


class FasterFifo(Peer):
    """faster-fifo's queue."""

    def __init__(self) -> None:
        super().__init__("faster_fifo")

    def Queue(self) -> Any:  # noqa: N802
        """Make a queue as large as in the documentation."""
        return self._library.Queue(RING_BYTES)


KINDS = {"posix_ipc": PosixIpc, "faster-fifo": FasterFifo}


def available() -> dict[str, Any]:
    """Return the peers that are installed; print which are not."""
    found: dict[str, Any] = {}
    for name, kind in KINDS.items():
        try:
            found[name] = kind()
        except ImportError:
            print(f"not compared: {name} is not installed (pip install '.[bench]')")
    return found
