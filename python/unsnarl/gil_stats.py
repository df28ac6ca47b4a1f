"""The data classes of :func:`unsnarl.gil.stats`.

Invariant: plain frozen data, in nanoseconds; every wait that ended with the GIL
is counted in exactly one class.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from unsnarl import gil_counts

if TYPE_CHECKING:
    from unsnarl._native import Counters


@dataclass(frozen=True, slots=True)
class ClassStats:
    """The waits for the GIL of one class of threads.

    Attributes:
        name: ``handed`` (returned from a lock, or new), ``io`` (returned from a blocking
            call), ``yielded`` (runnable, not known to be CPU-bound) or ``batch``
            (CPU-bound).
        waits: waits begun.
        served: waits that ended with the GIL.
        wait_p50_ns: median of the waits served, to one part in eight.
        wait_p99_ns: 99th percentile, to one part in eight.
        wait_max_ns: the longest.
        wait_sum_ns: all together.
        asks: times a thread of this class asked the holder to drop the GIL.
        forced_drops: times a holder of this class dropped it because it was asked.
        barged: times the GIL was meant for a waiting thread of this class and
            another one, that did not wait, took it first.
        wait_counts: the number of waits served that took less than 2**12, 2**13, …, 2**34 ns.
    """

    name: str
    waits: int
    served: int
    wait_p50_ns: int
    wait_p99_ns: int
    wait_max_ns: int
    wait_sum_ns: int
    asks: int
    forced_drops: int
    barged: int
    wait_counts: tuple[int, ...] = (0,) * len(gil_counts.WAIT_BOUNDS_NS)


@dataclass(frozen=True, slots=True)
class GilStats:
    """The scheduler's counters.

    Attributes:
        classes: one entry a class, best first.
        hand_overs: times the GIL went to another thread while a thread waited.
        forced_drops: times a holder dropped it on request; all classes.
        barged: see :class:`ClassStats`; all classes.
        aged_picks: times an old waiter was picked out of order.
        share_picks: times CPU-bound threads got their least share.
        lingers: times the GIL lingered for a thread that was expected to return immediately.
        lingers_hit: times that thread did return.
        longest_hold_ns: longest time one thread held the GIL while another wanted it.
        longest_hold_thread: name of that thread; its identifier if it has ended and no thread
            refers to it any more.
        waiting_now: threads that wait at this moment.
    """

    classes: tuple[ClassStats, ...]
    hand_overs: int
    forced_drops: int
    barged: int
    aged_picks: int
    share_picks: int
    lingers: int
    lingers_hit: int
    longest_hold_ns: int
    longest_hold_thread: str | None
    waiting_now: int


def from_counters(counters: Counters | None) -> GilStats:
    """Make the statistics from the native counters; all zero without counters."""
    named = gil_counts.named(counters)
    classes = tuple(ClassStats(**entry) for entry in named.pop("classes"))
    return GilStats(classes=classes, **named)
