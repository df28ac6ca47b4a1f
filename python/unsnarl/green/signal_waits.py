"""``sigwait``, ``sigwaitinfo`` and ``sigtimedwait`` that let the other threads run.

The system's own would stop the one native thread, and all green threads with it. A loop in C has
no event for a signal that is blocked, so it is looked for, often at first and then less. Linux lets these calls take
signals that are not blocked, too: they are blocked for the time of the wait, so that none ends the program between two
looks; not so in forked children. A child that C code starts meanwhile (``os.posix_spawn``, multiprocessing's
spawn) keeps them blocked.

Invariant: a signal is taken once, by one wait, and none is lost.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from typing import Any

_sleep: Any = import_module("gevent").sleep
_take: Any = signal.sigtimedwait

FIRST_S = 0.0005
"""Seconds between the first looks."""

LONGEST_S = 0.02
"""Seconds between looks at most: below what a person notices, and 50 cheap calls per second."""

_blocked_here: Counter[int] = Counter()
"""How many waits there are for each signal that the program has not blocked."""


def install() -> None:
    """Replace the three calls."""
    signal.sigwait, signal.sigwaitinfo, signal.sigtimedwait = sigwait, sigwaitinfo, sigtimedwait


def forget_waits() -> None:
    """Unblock in a forked child what waits of its parent block."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, tuple(_blocked_here))
    _blocked_here.clear()


def sigwait(sigset: Iterable[int]) -> int:
    """Do what ``signal.sigwait`` does."""
    number: int = sigwaitinfo(sigset).si_signo
    try:
        return signal.Signals(number)
    except ValueError:  # one of the real-time signals, most of which have no name
        return number


def sigwaitinfo(sigset: Iterable[int]) -> Any:
    """Do what ``signal.sigwaitinfo`` does."""
    return _wait(frozenset(sigset), None)


def sigtimedwait(sigset: Iterable[int], timeout: float) -> Any:
    """Do what ``signal.sigtimedwait`` does; the timeout is in seconds."""
    if timeout < 0:
        raise ValueError("timeout must be non-negative")
    return _wait(frozenset(sigset), time.monotonic() + timeout)


def _wait(sigset: frozenset[int], until: float | None) -> Any:
    """Look for a signal until there is one, or until a time of ``time.monotonic``."""
    found = _take(sigset, 0)
    if found is not None:
        return found
    ours = _block(sigset)
    try:
        return _look(sigset, until)
    finally:
        _unblock(ours)


def _look(sigset: frozenset[int], until: float | None) -> Any:
    pause_s = FIRST_S
    while (found := _take(sigset, 0)) is None:
        left_s = LONGEST_S if until is None else until - time.monotonic()
        if left_s <= 0:
            return None
        _sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, LONGEST_S)
    return found


def _block(sigset: frozenset[int]) -> set[int]:
    """Block signals, and return those that the program has not blocked itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, sigset)
    ours = {int(number) for number in sigset if number not in before or number in _blocked_here}
    _blocked_here.update(ours)
    return ours


def _unblock(ours: set[int]) -> None:
    """Unblock the signals that nobody waits for any more."""
    _blocked_here.subtract(ours)
    free = [number for number in ours if _blocked_here[number] <= 0]
    for number in free:
        del _blocked_here[number]
    signal.pthread_sigmask(signal.SIG_UNBLOCK, free)
