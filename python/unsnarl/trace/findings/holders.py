"""Which threads keep the GIL, and for how long at a time: CPU-bound threads, threads that fill it, calls into C.

Pure: a ``Process`` in, answers out. The rules about what this costs others are in ``gil`` and ``convoys``.
"""

from __future__ import annotations

import statistics
import sys
from bisect import bisect_right
from collections import defaultdict

from unsnarl.trace.findings.account import is_recording
from unsnarl.trace.model import RUNNING, WAITING, LongHold, Process, Thread

LONG_HOLD_NS = 30_000_000
"""The shortest hold, with other threads waiting, to be reported."""

LONG_HOLD_INTERVALS = 3
"""Switch intervals through which a thread waits behind one C call, and not for the end of a slice."""

SHORT_NS = 1_000_000
"""The shortest hold that has a stack."""

STARVED_SHARE = 0.25
"""The share of a hold without a processor, from which on a short wait for its end may be one for the processor."""

FEW = 5
"""From so many waits on, their median is what is usual."""

GROUP = 8
"""From so many threads with long holds at one line on, they lack processors."""

CROWD, CROWD_HOLDS = 100, 3
"""Among so many threads, fewer long holds of each at a line than this are those of threads without a processor."""

FULL_SHARE = 0.8
"""The share of the recording for which threads together held the GIL, from which on it is full."""

IDLE_SHARE = 0.4
"""The largest share of its life that a CPU-bound thread is blocked; time without a processor counts as blocked, too."""

HOLD_SHARE = 0.2
"""The shortest mean hold of a CPU-bound thread, as a share of the switch interval."""


def is_cpu_bound(process: Process, thread: Thread) -> bool:
    """Tell whether a thread holds the GIL for a large part of a slice at a time, and rarely blocks."""
    life = sum(thread.totals_ns)
    idle = thread.on_lock_ns + thread.io_ns + thread.asleep_ns + thread.computing_ns
    mean_hold = thread.running_ns / max(thread.takes, 1)
    return life > 0 and idle <= IDLE_SHARE * life and mean_hold >= HOLD_SHARE * process.interval_ns


def is_full(process: Process) -> bool:
    """Tell whether the GIL was held for nearly all of the time, by several threads."""
    running = sum(thread.running_ns for thread in process.threads)
    return running >= FULL_SHARE * process.length_ns and len(process.threads) > 1


def sharers_of(process: Process) -> set[int]:
    """Return the numbers of the threads that fill the GIL alike: no order among them serves all sooner.

    Where a thread is CPU-bound, the others may be served before it, so there are none.
    """
    if not is_full(process) or any(is_cpu_bound(process, thread) for thread in process.threads):
        return set()
    running = sum(thread.running_ns for thread in process.threads)
    least = running / (2 * len(process.threads))
    return {number for number, thread in enumerate(process.threads) if thread.running_ns >= least}


def least_ns(process: Process) -> int:
    """Return the shortest hold that is a long one."""
    return max(LONG_HOLD_NS, 4 * process.interval_ns)


def needs_long(process: Process, hold: LongHold) -> bool:
    """Tell whether a hold needed a processor for so long, and the wait for its end is not explained by the lack of one.

    A thread in Python's code drops the GIL on request, but keeps it for as long as nobody asks. A wait that is no
    longer than the hold lacked a processor, and a request takes, may be one for the processor.
    """
    if hold.ran_ns < least_ns(process):
        return False
    is_starved_much = hold.starved_ns >= STARVED_SHARE * hold.length_ns
    return not is_starved_much or hold.waited_ns >= hold.starved_ns + LONG_HOLD_INTERVALS * process.interval_ns


def by_line(process: Process) -> dict[str, list[LongHold]]:
    """Return the long holds by their line, over all threads: those for which a processor was needed for so long."""
    result: dict[str, list[LongHold]] = defaultdict(list)
    for hold in process.long_holds:
        if needs_long(process, hold) and not is_recording(process, hold.node):
            result[place_of(process, hold)].append(hold)
    return result


def place_of(process: Process, hold: LongHold) -> str:
    """Return the line of a hold in words."""
    return str(process.line_of(hold.node) or "an unknown line")


def is_starved(process: Process, line: str, holds: list[LongHold]) -> bool:
    """Tell whether threads lacked a processor: most of their holds at this line end on request.

    A C call takes as long each time. Threads in a loop of Python without a processor hold the GIL for long now and
    then, at a line at which they drop the GIL within a switch interval or two otherwise. So do threads of which
    there are many, each with a long hold or two.
    """
    threads = {hold.thread for hold in holds}
    if len(threads) >= GROUP or (len(process.threads) >= CROWD and len(holds) < CROWD_HOLDS * len(threads)):
        return True
    short = 0
    for number in threads:
        for _, length_ns, state, node in process.threads[number].stretches:
            if state == RUNNING and SHORT_NS <= length_ns < LONG_HOLD_INTERVALS * process.interval_ns and node:
                short += str(process.line_of(node)) == line
    return short >= len(holds)


class Holds:
    """The holds of the GIL that have a record of their own, by thread and line; each is looked up once."""

    def __init__(self, process: Process) -> None:
        """Look up nothing yet."""
        self._process = process
        self._found: dict[tuple[int, str], list[tuple[int, int]]] = {}

    def usually_kept_ns(self, holder: int, waiter: int, line: str) -> int:
        """Return for how long a thread usually keeps the GIL at a line while another one waits; 0 for a few waits."""
        holds = self._at(holder, line)
        kept: list[int] = []
        for begin, length_ns, state, _ in self._process.threads[waiter].stretches:
            # The hold that ends the wait, or that lasts when it ends.
            at = bisect_right(holds, (begin + length_ns, sys.maxsize)) - 1
            if state == WAITING and length_ns >= SHORT_NS and at >= 0:
                overlap_ns = min(holds[at][1], begin + length_ns) - max(holds[at][0], begin)
                kept += [overlap_ns] if overlap_ns >= SHORT_NS else []
        return int(statistics.median(kept)) if len(kept) >= FEW else 0

    def _at(self, holder: int, line: str) -> list[tuple[int, int]]:
        """Return the beginnings and ends of a thread's holds at a line, in their order."""
        if (holder, line) not in self._found:
            stretches = self._process.threads[holder].stretches
            nodes = {node for _, _, state, node in stretches if state == RUNNING and node}
            nodes = {node for node in nodes if str(self._process.line_of(node)) == line}
            self._found[holder, line] = [
                (begin, begin + length_ns)
                for begin, length_ns, state, node in stretches
                if state == RUNNING and length_ns >= SHORT_NS and node in nodes
            ]
        return self._found[holder, line]
