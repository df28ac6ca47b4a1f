"""Start many processes together: none runs before all are started.

A process that runs as soon as it is started takes processor time from the process that starts the others. Starting n
of them then takes a time that grows with the square of n. Behind a gate they sleep until the last one is started.

Invariant: a child whose parent died before the gate opened ends without running its target.
"""

from __future__ import annotations

import functools
import multiprocessing
from collections.abc import Iterable
from multiprocessing.process import BaseProcess
from typing import Any

from unsnarl._native import IpcEvent

RECHECK_S = 1.0
"""Seconds between two checks of a waiting child on its parent."""


def start_together(processes: Iterable[BaseProcess]) -> None:
    """Start the processes, and let them run when the last one is started.

    If one cannot be started, those already started continue, and the error is raised.
    """
    gate = IpcEvent()
    try:
        for process in processes:
            vars(process)["run"] = functools.partial(_run_behind, gate, process)
            process.start()
            # No longer needed, and it refers to the process itself.
            del vars(process)["run"]
    finally:
        gate.set()


def _run_behind(gate: Any, process: BaseProcess) -> None:
    """Wait for the gate, then run the process's target."""
    parent = multiprocessing.parent_process()
    while not gate.wait(RECHECK_S):
        if parent is not None and not parent.is_alive():
            return
    type(process).run(process)
