"""The GIL scheduler: install it, give it hints about threads, read its statistics.

    import unsnarl
    unsnarl.gil.install()

Threads that return from I/O or from a lock run immediately. CPU-bound threads keep their
throughput and share it evenly. No thread starves. ``docs/concepts/gil.md`` explains the
scheduler, ``docs/design/gil-policy.md`` has the rules as formulas.

Invariant: this module decides nothing, the policy is native. Importing it loads no module of
the standard library that a bare interpreter has not loaded (``unsnarl run`` imports it before
the program's first line).
"""

import os
import sys

from unsnarl import _fork_exec, _native
from unsnarl.errors import UnsupportedInterpreter

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Literal

    from unsnarl.gil_stats import ClassStats, GilStats

    Kind = Literal["interactive", "batch"] | None

__all__ = ["ClassStats", "GilStats", "hint", "install", "installed", "reset_stats", "stats", "uninstall"]

SHORTEST_SLICE_MS = 0.001
"""CPython's own resolution of the switch interval: one microsecond."""
LONGEST_SLICE_MS = 1_000_000.0
"""A little under 17 minutes: longer is a mistake, not a slice."""

BATCH_SHARE = 0.2
"""The default share of CPU-bound threads. A fifth costs the others little, and no CPU-bound thread stands still."""
MOST_BATCH_SHARE = 0.9


def install(*, slice_ms: float | None = None, batch_share: float | None = None, kernel_hints: bool = True) -> None:
    """Install the scheduler in this interpreter, for all its threads.

    Installing twice is one install: the second call only applies ``slice_ms`` and ``batch_share``.
    With ``UNSNARL=off`` in the environment nothing happens. Thread-safe; the
    calling thread releases the GIL meanwhile.

    Args:
        slice_ms: how long a CPU-bound thread runs while others wait, in
            milliseconds; the same as ``sys.setswitchinterval(slice_ms / 1000)``,
            which keeps working afterwards. By default the interval stays; a longer
            interval than the longest slice counts as the longest slice.
        batch_share: the least share of the GIL that CPU-bound threads keep
            together while others want it all the time, from 0 to 0.9; by default a
            fifth. Where nobody else wants the GIL they have all of it. A larger share
            gives a computing main thread more, and threads that serve requests less.
        kernel_hints: whether to hint the kernel which threads are CPU-bound
            (SCHED_BATCH and a long slice, while they are), so that a thread that
            wakes up on their processor runs immediately.

    Raises:
        UnsupportedInterpreter: it cannot be installed here, with the reason
            and a hint; the interpreter is exactly as it was.
        ValueError: ``slice_ms`` is not between 0.001 and 1,000,000, or
            ``batch_share`` is not between 0 and 0.9.
    """
    if os.environ.get("UNSNARL") == "off":
        return
    share = BATCH_SHARE if batch_share is None else batch_share
    if not 0 <= share <= MOST_BATCH_SHARE:
        raise ValueError(f"batch_share must be between 0 and {MOST_BATCH_SHARE}, not {batch_share!r}")
    interval = sys.getswitchinterval()
    if slice_ms is not None:
        _set_slice(slice_ms)
    slice_ns = round(min(sys.getswitchinterval() * 1e9, LONGEST_SLICE_MS * 1e6))
    try:
        _native.install(slice_ns, round(share * 1000), kernel_hints, _fork_exec.find())
    except _native.Unsupported as error:
        sys.setswitchinterval(interval)
        raise UnsupportedInterpreter(*error.args) from None


def _set_slice(slice_ms: float) -> None:
    """Set the switch interval, in milliseconds."""
    if not SHORTEST_SLICE_MS <= slice_ms <= LONGEST_SLICE_MS:
        raise ValueError(f"slice_ms must be between {SHORTEST_SLICE_MS} and {LONGEST_SLICE_MS:.0f}, not {slice_ms!r}")
    sys.setswitchinterval(slice_ms / 1000)


def uninstall() -> bool:
    """Restore the interpreter; return whether the scheduler was installed.

    Threads that wait for the GIL at this moment continue to wait in the stock way.
    """
    return _native.uninstall()


def installed() -> bool:
    """Return whether the scheduler is active in this interpreter."""
    return _native.is_installed()


class HintScope:
    """Restore the previous hint at the end of a ``with`` block."""

    __slots__ = ("_before",)

    _before: "Kind"

    def __init__(self, before: "Kind") -> None:
        """Store the hint to restore."""
        self._before: Kind = before

    def __enter__(self) -> None:
        """Do nothing: the hint is already set."""

    def __exit__(
        self, kind: "type[BaseException] | None", error: "BaseException | None", traceback: "TracebackType | None"
    ) -> None:
        """Restore the previous hint, for the thread that leaves the block."""
        _native.hint(self._before)


def hint(kind: "Kind") -> HintScope:
    """Set the class of the calling thread, instead of inferring it from its history.

    The hint takes effect immediately. It lasts until the next hint of the same thread, or to
    the end of the block when used as ``with unsnarl.gil.hint("interactive"):``. Without the
    scheduler it has no effect.

    Args:
        kind: ``"interactive"``: always served as a thread that returns from I/O;
            ``"batch"``: always served as a CPU-bound thread; ``None``: by its history.

    Raises:
        ValueError: ``kind`` is something else.
    """
    return HintScope(_native.hint(kind))


def stats() -> "GilStats":
    """Return the scheduler's counters since it was installed or reset.

    Times are in nanoseconds. The counters are kept by the queue's lock and cost
    no clock reading while no thread waits; one call copies them, in microseconds.
    """
    from unsnarl import gil_stats

    return gil_stats.from_counters(_native.stats())


def reset_stats() -> None:
    """Set all counters to zero."""
    _native.reset_stats()


if not TYPE_CHECKING:

    def __getattr__(name):
        """Load the classes of the statistics on first use: they need ``dataclasses``."""
        if name in {"ClassStats", "GilStats"}:
            from unsnarl import gil_stats

            return getattr(gil_stats, name)
        raise AttributeError(f"module 'unsnarl.gil' has no attribute {name!r}")


if "_unsnarl_boot" in sys.modules:
    # Under `unsnarl run`, whose installation may wait for the first thread: this program looks at it.
    sys.modules["_unsnarl_boot"].complete()
