"""Measures the plain call that has made a start worth while, from outside and while it runs.

Imports alone overestimate what a plain call takes: a command that imports lazily, as Mercurial, never imports most of
what its server does.

Invariant: what is returned is never more than the call has taken. Threads and children of the call do not count.
"""

from __future__ import annotations

import os
import select
import time

from .. import pidfd

# Seconds between two looks, and after which a call that still runs is not measured.
STEP_S, LONGEST_S = 0.005, 1.0


def caller(lock: int) -> int:
    """Return the call that has signed a start's lock (crates/client/src/server/start.rs), or 0."""
    words = os.pread(lock, 64, 0).split()
    is_other = len(words) == 2 and words[0] == b"started" and words[1].isdigit() and int(words[1]) != os.getpid()
    return int(words[1]) if is_other else 0


def measure_ms(pid: int) -> int | None:
    """Wait until a call has ended; return the milliseconds of processor time, None if that was not seen."""
    try:
        end = pidfd.open_of(pid)
    except OSError:
        return None
    try:
        return _until(end, pid)
    finally:
        os.close(end)


def _until(end: int, pid: int) -> int | None:
    question = select.poll()
    question.register(end, select.POLLIN)
    ends_s, longest_ns = time.monotonic() + LONGEST_S, 0
    while time.monotonic() < ends_s:
        has_ended = question.poll(0)
        longest_ns = max(longest_ns, _taken_ns(pid))
        if has_ended:
            return round(longest_ns / 1e6) or None
        question.poll(1000 * STEP_S)
    return None


def _taken_ns(pid: int) -> int:
    """Return the nanoseconds that the main thread of a process has run (sched-stats of the kernel's documentation)."""
    try:
        with open(f"/proc/{pid}/schedstat") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
