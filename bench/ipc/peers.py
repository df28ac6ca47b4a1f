"""What else there is between processes, under the names of a multiprocessing context.

`posix_ipc` has semaphores of the kernel by name, and a lock is one of value 1; `faster-fifo` has a
queue in shared memory. Events, conditions and barriers neither has. Invariant: what a peer does not
have of its own comes from multiprocessing, so that every variant starts its processes alike.
"""

from __future__ import annotations

import importlib
import multiprocessing
from typing import Any

FORK: Any = multiprocessing.get_context("fork")

RING_BYTES = 1_000_000
"""What faster-fifo's own documentation gives a queue."""


class Peer:
    """A context of multiprocessing, with what one library does in its own way."""

    Process = FORK.Process
    Event = FORK.Event
    Semaphore = FORK.Semaphore

    def __init__(self, library: str) -> None:
        self._library = importlib.import_module(library)


class PosixIpc(Peer):
    """Semaphores of posix_ipc; their names are gone as soon as they are made."""

    def __init__(self) -> None:
        super().__init__("posix_ipc")

    def Semaphore(self, value: int = 1) -> Any:  # noqa: N802 - the standard library's name
        """Make one that children inherit by fork."""
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
        """Make one as large as its documentation does."""
        return self._library.Queue(RING_BYTES)


KINDS = {"posix_ipc": PosixIpc, "faster-fifo": FasterFifo}


def available() -> dict[str, Any]:
    """Return the peers that are installed, and say which are not."""
    found: dict[str, Any] = {}
    for name, kind in KINDS.items():
        try:
            found[name] = kind()
        except ImportError:
            print(f"not compared: {name} is not installed (pip install '.[bench]')")
    return found
