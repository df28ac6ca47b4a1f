"""The end of a learning run: without the functions that imports have registered for the end of a run.

Such a function may write a file, print, or wait for a thread, once for each process that has imported its module. A
learning run is no run of the command. It therefore ends before any of these functions is called, and before objects
are finalised. What its imports have printed is flushed first, since that counts; temporary files are removed.

Invariant: nothing of the command runs after the facts are written, but methods of streams that it has put in place.
"""

from __future__ import annotations

import contextlib
import os
import sys

from ..importing import temporary
from . import probe

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def run(args: list[str], import_ctypes: Callable[[], ModuleType]) -> None:
    """Make a learning run (:func:`probe.main`), and end the process."""
    made, status = temporary.Directories(), 1
    try:
        probe.main(args, made)
        status = 0
    except BaseException as problem:
        sys.__excepthook__(type(problem), problem, problem.__traceback__)  # its last line is the reason that is shown
    _flush(import_ctypes)
    made.clear()
    os._exit(status)


def _flush(import_ctypes: Callable[[], ModuleType]) -> None:
    """Flush the streams of the interpreter and those of C."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    with contextlib.suppress(Exception):  # an interpreter without it
        import_ctypes().PyDLL(None).fflush(None)
