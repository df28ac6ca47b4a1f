"""Exceptions for failures that occur between processes and not between threads."""

from __future__ import annotations

from unsnarl.errors import UnsnarlError


class OwnerDied(UnsnarlError):  # noqa: N818 -- a fact about another process, not a mistake
    """Report that a process died while it held what the caller waited for.

    Of `Lock`, `RLock` and `RWLock.writer`: the caller that gets it from ``acquire()`` *holds* the lock, may repair
    what the lock protects, and then calls ``make_consistent()``. Until then every later ``acquire()`` raises it too.
    After ``OwnerDied`` from ``with`` the lock is not held. Of `Semaphore`: nothing was acquired;
    ``make_consistent()`` gives the dead process's permits back.

    Attributes:
        pid: the id of the process that died, 0 if unknown.
    """

    pid: int

    def __init__(self, message: str, pid: int = 0) -> None:
        """Keep the process's id."""
        super().__init__(message, pid)
        self.pid = pid

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[0])


class NotHeld(UnsnarlError, RuntimeError, ValueError, AssertionError):  # noqa: N818 -- as the standard library's
    """Report that a caller releases a lock, or uses a condition, without holding it.

    `threading` raises a RuntimeError there. multiprocessing raises a ValueError for a Lock, and an AssertionError for
    an RLock and a Condition.
    """


class SegmentRefused(UnsnarlError):  # noqa: N818 -- a verdict about another user's file
    """Report that a named segment is not used: damaged, foreign, of another kind or version.

    Attributes:
        reason: what is wrong with it, as a sentence without a full stop.
        hint: the next step.
    """

    reason: str
    hint: str

    def __init__(self, reason: str, hint: str) -> None:
        """Keep reason and hint apart, so that callers can show either."""
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        """Return the reason and the hint in one line."""
        return f"{self.reason} (hint: {self.hint})" if self.hint else self.reason
