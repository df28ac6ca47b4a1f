"""The square programs with processes: started one by one, and passing one lock along.

``start``: n processes are started, each of which runs until all are.
``mutex``: n processes pass one lock along, and run on.

The library is ``multiprocessing`` or ``unsnarl.ipc``: its context provides the process and the lock, and
``unsnarl.ipc`` starts the processes together behind a gate. All other shared state is plain shared memory
in both, so that nothing else differs.
"""

from __future__ import annotations

import importlib
import mmap
import struct
import sys
import time
from typing import TYPE_CHECKING, Any

import measured

if TYPE_CHECKING:
    from collections.abc import Callable

CLOCK = struct.Struct("d")


class Shared:
    """One byte for each process, and the time at which the first process proceeded."""

    def __init__(self, n: int) -> None:
        """Map memory that forked processes share."""
        self._n = n
        self._memory = mmap.mmap(-1, n + CLOCK.size)

    def enter(self, index: int) -> None:
        """Mark a process as present."""
        self._memory[index] = 1

    def leave(self, index: int) -> None:
        """Mark a process as done."""
        self._memory[index] = 0

    def is_full(self) -> bool:
        """Tell whether every process is present."""
        return self._memory.find(b"\0", 0, self._n) < 0

    def is_empty(self) -> bool:
        """Tell whether every process is done."""
        return self._memory.find(b"\1", 0, self._n) < 0

    @property
    def began_s(self) -> float:
        """The time at which the first process proceeded; 0 before."""
        return float(CLOCK.unpack_from(self._memory, self._n)[0])

    @began_s.setter
    def began_s(self, value: float) -> None:
        CLOCK.pack_into(self._memory, self._n, value)


class Library:
    """The library that provides processes and locks."""

    def __init__(self, name: str) -> None:
        """Import the library by the name of its module."""
        module = importlib.import_module(name)
        self.context = module.get_context("fork")
        self._start: Callable[[list[Any]], None] = getattr(module, "start_together", start_one_by_one)

    def run_all(self, work: Callable[[int], None], n: int) -> None:
        """Start n processes and wait for them."""
        processes = [self.context.Process(target=work, args=(index,), daemon=True) for index in range(n)]
        self._start(processes)
        for process in processes:
            process.join()
            if process.exitcode != 0:
                sys.exit(f"a process ended with {process.exitcode}")


def start_one_by_one(processes: list[Any]) -> None:
    """Start processes one after the other."""
    for process in processes:
        process.start()


def start(library: Library, n: int) -> float:
    """Start n processes, each of which runs until all are started; return seconds."""
    shared = Shared(n)

    def work(index: int) -> None:
        shared.enter(index)
        while not shared.is_full():
            time.sleep(0)

    began_s = time.perf_counter()
    library.run_all(work, n)
    return time.perf_counter() - began_s


def mutex(library: Library, n: int) -> float:
    """Pass a lock through n processes that wait for it, each running on afterwards; return seconds."""
    shared = Shared(n)
    lock = library.context.Lock()

    def work(index: int) -> None:
        shared.enter(index)
        with lock:
            if not shared.began_s:
                while not shared.is_full():
                    time.sleep(0)
                shared.began_s = time.perf_counter()
        shared.leave(index)
        while not shared.is_empty():
            time.sleep(0)

    library.run_all(work, n)
    return time.perf_counter() - shared.began_s


PROGRAMS = {"start": start, "mutex": mutex}


def main() -> None:
    """Run one program once."""
    parser = measured.parser(__doc__)
    parser.set_defaults(library="multiprocessing")
    parser.add_argument("program", choices=tuple(PROGRAMS))
    parser.add_argument("processes", type=int)
    arguments = parser.parse_args()
    library = Library(arguments.library)
    measured.print_figures(elapsed_s=PROGRAMS[arguments.program](library, arguments.processes))


if __name__ == "__main__":
    main()
