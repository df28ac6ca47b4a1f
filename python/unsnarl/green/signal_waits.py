"""``sigwait``, ``sigwaitinfo`` and ``sigtimedwait`` that let the other threads run.

The system calls would stop the one native thread, and with it all green threads. gevent's loop has no event for a
blocked signal, so the signal is polled for, often at first and then less often. On Linux these calls also accept
signals that are not blocked. Such signals are blocked during the wait, so that none ends the program between two
polls, and unblocked in forked children. A child that C code starts during the wait (``os.posix_spawn``,
multiprocessing's spawn) keeps them blocked.

Invariant: a signal is accepted once, by one wait, and none is lost.
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
"""Seconds between the first polls."""

LONGEST_S = 0.02
"""Most seconds between polls: too short for a person to notice, and 50 cheap calls per second."""

_blocked_here: Counter[int] = Counter()
"""The number of waits for each signal that the program itself has not blocked."""


def install() -> None:
    """Replace the three calls."""
    signal.sigwait, signal.sigwaitinfo, signal.sigtimedwait = sigwait, sigwaitinfo, sigtimedwait


def forget_waits() -> None:
    """Unblock in a forked child the signals that its parent's waits block."""
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
    """Poll until a signal arrives, or until a time of ``time.monotonic``."""
    found = _take(sigset, 0)
    if found is not None:
        return found
    ours = _block(sigset)
    try:
        return _poll(sigset, until)
    finally:
        _unblock(ours)


def _poll(sigset: frozenset[int], until: float | None) -> Any:
    pause_s = FIRST_S
    while (found := _take(sigset, 0)) is None:
        left_s = LONGEST_S if until is None else until - time.monotonic()
        if left_s <= 0:
            return None
        _sleep(min(pause_s, left_s))
        pause_s = min(2 * pause_s, LONGEST_S)
    return found


def _block(sigset: frozenset[int]) -> set[int]:
    """Block signals; return those that the program itself has not blocked."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, sigset)
    ours = {int(number) for number in sigset if number not in before or number in _blocked_here}
    _blocked_here.update(ours)
    return ours


def _unblock(ours: set[int]) -> None:
    """Unblock the signals for which no wait remains."""
    _blocked_here.subtract(ours)
    free = [number for number in ours if _blocked_here[number] <= 0]
    for number in free:
        del _blocked_here[number]
    signal.pthread_sigmask(signal.SIG_UNBLOCK, free)
