"""Which threads a thread depends on: those that end its waits for locks and for work.

Pure: a ``Process`` in, an answer out. Where the records do not show who ended a wait, nobody did.
"""

from __future__ import annotations

from collections import defaultdict

from unsnarl.trace.findings.locks import is_for_work
from unsnarl.trace.model import IN_IO, LOCK, Process

LEAST_SHARE = 0.5
"""The least share of a thread's life that it waits for others, and of these waits that they end, to depend on them."""

LOCK_SHARE = 0.1
"""The least share of a thread's life that it waits for locks and for work, to depend on those that end these waits.

A thread that waits for the GIL alone, after each short call, gets its own work done sooner if it gets the GIL sooner.
"""

WORK_SHARE = 0.03
"""The same where these waits are for what others do, as `Thread.join` is: on a busy machine such a thread waits for the
GIL for most of the time in which the others work."""

OTHERWISE_SHARE = 0.05
"""The most of its life that such a thread is in I/O, asleep or in C code, which it could begin sooner."""


def depends_on(process: Process, number: int, others: frozenset[int]) -> bool:
    """Tell whether a thread mostly waits for some others, and does nothing else without the GIL.

    If it gets the GIL sooner, it only waits for them sooner.
    """
    thread = process.threads[number]
    life_ns = sum(thread.totals_ns)
    elsewhere_ns = thread.io_ns + thread.asleep_ns + thread.computing_ns - _starved_ns(process, number)
    blocked_ns = thread.on_lock_ns + thread.waiting_ns
    if blocked_ns < LEAST_SHARE * life_ns or elsewhere_ns > OTHERWISE_SHARE * life_ns:
        return False
    placed = process.stacks_in.get((number, LOCK), ())
    for_work_ns = sum(time_ns for node, time_ns in placed if node and is_for_work(process, node))
    least_ns = (WORK_SHARE if 2 * for_work_ns > thread.on_lock_ns else LOCK_SHARE) * life_ns
    if thread.on_lock_ns < least_ns:
        return False
    ended, ended_ns = _ended(process), 0.0
    for node, time_ns in placed:
        by = ended[node]
        ended_ns += time_ns * sum(by[other] for other in others if other in by) / max(sum(by.values()), 1)
    return ended_ns >= LEAST_SHARE * thread.on_lock_ns


def _starved_ns(process: Process, number: int) -> int:
    """Return for how long a thread seemed to be in I/O where it waits for others: it had no processor."""
    in_io = process.stacks_in.get((number, IN_IO), ())
    return sum(time_ns for node, time_ns in in_io if process.is_in_wait(node))


def _ended(process: Process) -> dict[int, dict[int | None, int]]:
    """Return the time of the waits at each stack by the thread that ended them."""
    result: dict[int, dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
    for waits in process.locks:
        result[waits.wait_node][waits.releaser] += waits.total_ns
    return result
