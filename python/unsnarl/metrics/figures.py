"""The figures of this process as metric families, in the data model of Prometheus.

Counters and histograms only grow, until ``reset_stats()``: the reader computes rates and quantiles over a time of its
choice. Invariant: this module may be loaded before a program's first line, so it imports nothing of the standard
library that the interpreter has not loaded by then.
"""

import sys

from unsnarl import _native, gil_counts

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


class Sample:
    """One value of a family: the suffix of its name, its labels, and the value."""

    __slots__ = ("labels", "suffix", "value")

    def __init__(self, suffix: str, value: float, **labels: str) -> None:
        """Make a sample."""
        self.suffix: str = suffix
        self.labels: dict[str, str] = labels
        self.value: float = value


class Family:
    """All samples of one name; the name of a counter is without ``_total``, which is its samples' suffix."""

    __slots__ = ("kind", "name", "purpose", "samples")

    def __init__(self, name: str, kind: str, purpose: str, samples: list[Sample]) -> None:
        """Make a family."""
        self.name: str = name
        self.kind: str = kind
        self.purpose: str = purpose
        self.samples: list[Sample] = samples


def families() -> list[Family]:
    """Return the figures of this process; thread-safe. The scheduler's are zero until it is installed."""
    counters = _native.stats()
    stats = gil_counts.named(counters)
    return [
        _gauge("scheduler_installed", "Whether the GIL scheduler is installed.", int(counters is not None)),
        _gauge("threads", "Threads that threading knows.", _threads()),
        _gauge("gil_waiting", "Threads that are waiting for the GIL.", stats["waiting_now"]),
        _counter("gil_hand_overs", "Hand-overs of the GIL to another thread.", stats["hand_overs"]),
        _counter("gil_aged_picks", "Times an old waiter was picked out of order.", stats["aged_picks"]),
        _counter("gil_share_picks", "Times CPU-bound threads were granted their share.", stats["share_picks"]),
        _counter("gil_lingers", "Times a dropped GIL was left for its last holder.", stats["lingers"]),
        _gauge(
            "gil_longest_hold_seconds",
            "Longest time one thread held the GIL while another waited.",
            stats["longest_hold_ns"] / 1e9,
        ),
        _by_class(stats, "gil_waits", "Waits for the GIL.", "waits"),
        _by_class(stats, "gil_forced_drops", "Drops of the GIL on request.", "forced_drops"),
        _by_class(stats, "gil_barged", "Times another thread took the GIL first.", "barged"),
        _waits(stats),
    ]


def _threads() -> int:
    threading = sys.modules.get("threading")
    if threading is None or not hasattr(threading, "active_count"):  # not loaded, or a file of the program by that name
        return 1
    return int(threading.active_count())


def _gauge(name: str, purpose: str, value: float) -> Family:
    return Family(f"unsnarl_{name}", GAUGE, purpose, [Sample("", value)])


def _counter(name: str, purpose: str, value: int) -> Family:
    return Family(f"unsnarl_{name}", COUNTER, purpose, [Sample("_total", value)])


def _by_class(stats: "dict[str, Any]", name: str, purpose: str, field: str) -> Family:
    samples = [Sample("_total", entry[field], **{"class": entry["name"]}) for entry in stats["classes"]]
    return Family(f"unsnarl_{name}", COUNTER, purpose, samples)


def _waits(stats: "dict[str, Any]") -> Family:
    """Return the histogram of waits; its bounds are powers of two of nanoseconds, where counts are exact."""
    samples: list[Sample] = []
    for entry in stats["classes"]:
        of = {"class": entry["name"]}
        for bound_ns, count in zip(gil_counts.WAIT_BOUNDS_NS, entry["wait_counts"], strict=True):
            samples.append(Sample("_bucket", count, **of, le=repr(bound_ns / 1e9)))
        samples.append(Sample("_bucket", entry["served"], **of, le="+Inf"))
        samples.append(Sample("_sum", entry["wait_sum_ns"] / 1e9, **of))
        samples.append(Sample("_count", entry["served"], **of))
    return Family("unsnarl_gil_wait_seconds", HISTOGRAM, "Waits for the GIL that ended with it.", samples)
