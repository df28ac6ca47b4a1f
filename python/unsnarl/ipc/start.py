"""Start many processes at once: none runs before all are started.

A process that runs as soon as it is started takes processor time from the one that
starts the others: starting n of them then takes a time that grows with the square of n.
Behind a gate they sleep until the last one is there.

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
"""Seconds between two looks of a waiting child at its parent."""


def start_together(processes: Iterable[BaseProcess]) -> None:
    """Start the processes, and let them run when the last one is started.

    Where one cannot be started, those that were are let go on, and the error is raised.
    """
    gate = IpcEvent()
    try:
        for process in processes:
            vars(process)["run"] = functools.partial(_run_behind, gate, process)
            process.start()
            # Not needed any more, and it refers to the process itself.
            del vars(process)["run"]
    finally:
        gate.set()


def _run_behind(gate: Any, process: BaseProcess) -> None:
    """Wait for the gate, then run what the process is for."""
    parent = multiprocessing.parent_process()
    while not gate.wait(RECHECK_S):
        if parent is not None and not parent.is_alive():
            return
    type(process).run(process)
