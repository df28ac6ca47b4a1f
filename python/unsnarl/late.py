"""Installs the scheduler in the midst of a program, right before its first thread: see ``_unsnarl_boot``.

Invariants: as in ``run_start``, no module of the standard library is imported that every interpreter has not loaded;
what was observed is as before, also if the installation fails.
"""

import os
import sys

import _unsnarl_boot

_LOOKS = 100
"""How often to look whether a joined thread still counts."""


def install() -> None:
    """Stop observing, and install; raises nothing but what a signal handler raises."""
    _restore()
    try:
        from unsnarl import run_start

        run_start.install_late(_unsnarl_boot.settings)
    except Exception:
        return  # a half-removed installation; `run_start` reports all other failures
    _await_joined()


def _restore() -> None:
    """Put everything back that is still ours, also where ``threading`` has kept it under a name of its own."""
    threading = sys.modules.get("threading")
    for owner, name, original, ours in _unsnarl_boot.observed:
        for place, kept in ((owner, name), (threading, f"_{name}")):
            if place is not None and place.__dict__.get(kept) is ours:
                setattr(place, kept, original)
    _unsnarl_boot.observed.clear()


def _await_joined() -> None:
    """Wait until the kernel counts one thread again: CPython warns of a fork with more (from 3.12 on).

    The installation has joined the threads that it started, but a joined thread counts for microseconds more.
    """
    for _ in range(_LOOKS):
        try:
            if len(os.listdir("/proc/self/task")) == 1:
                return
            os.sched_yield()
        except OSError:
            return
