"""The native counters of the scheduler by the names that users know.

``unsnarl run --stats`` needs them at the very end of a program, among that program's own
modules. A module imported there could be a file of the program, and would run it. A module that
executes a string, as ``dataclasses`` does, makes CPython forget that the program ends by Ctrl-C.

Invariant: nothing is imported that the interpreter has not loaded by itself.
"""

import _thread
import os
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

    from unsnarl._native import Counters

CLASSES = ("handed", "io", "yielded", "batch")
"""Names of the classes, best first."""
NUMBERS_OF_A_CLASS = (
    "waits",
    "served",
    "wait_p50_ns",
    "wait_p99_ns",
    "wait_max_ns",
    "wait_sum_ns",
    "asks",
    "forced_drops",
    "barged",
)

WAIT_BOUNDS_NS = tuple(1 << exponent for exponent in range(12, 35))
"""``wait_counts`` has the number of waits below each of these: 4 µs to 17 s."""


def named(counters: "Counters | None") -> "dict[str, Any]":
    """Return the fields of :class:`unsnarl.gil.GilStats`, with ``classes`` as dicts; all zero without counters."""
    if counters is None:
        nothing = {**dict.fromkeys(NUMBERS_OF_A_CLASS, 0), "wait_counts": (0,) * len(WAIT_BOUNDS_NS)}
        classes: list[dict[str, Any]] = [{"name": name, **nothing} for name in CLASSES]
        return _totals(classes, {}, None)
    of_class: Any = counters["classes"]
    keys = (*NUMBERS_OF_A_CLASS, "wait_counts")
    classes = [{"name": name, **{key: of_class[name][key] for key in keys}} for name in CLASSES]
    return _totals(classes, counters, counters["longest_hold_ident"])


def _totals(classes: "list[dict[str, Any]]", counters: "Any", longest_hold_ident: int | None) -> "dict[str, Any]":
    return {
        "classes": classes,
        "hand_overs": counters.get("hand_overs", 0),
        "forced_drops": sum(entry["forced_drops"] for entry in classes),
        "barged": sum(entry["barged"] for entry in classes),
        "aged_picks": counters.get("aged_picks", 0),
        "share_picks": counters.get("share_picks", 0),
        "lingers": counters.get("lingers", 0),
        "lingers_hit": counters.get("lingers_hit", 0),
        "longest_hold_ns": counters.get("longest_hold_ns", 0),
        "longest_hold_thread": _thread_name(longest_hold_ident),
        "waiting_now": counters.get("waiting", 0),
    }


def _thread_name(ident: int | None) -> str | None:
    """Return the name of a thread by its identifier, if it is known."""
    if ident is None:
        return None
    names = _names(ident)
    if names:
        # Identifiers are used again: of ended threads, several may have had this one.
        return " or ".join(names)
    return f"thread {ident:#x} (ended, or not started by threading)"


def _names(ident: int) -> list[str]:
    """Return the name of the live thread with this identifier, else of the ended threads with it."""
    threading = sys.modules.get("threading")
    if threading is None or not hasattr(threading, "enumerate"):  # not loaded, or a file of the program by that name
        is_main = ident == _thread.get_ident() and _thread.get_native_id() == os.getpid()
        return ["MainThread"] if is_main else []
    alive = [thread.name for thread in threading.enumerate() if thread.ident == ident]
    # All threads that are still referenced, dead or alive.
    known = list(getattr(threading, "_dangling", ()))
    return alive[:1] or sorted({thread.name for thread in known if thread.ident == ident})
