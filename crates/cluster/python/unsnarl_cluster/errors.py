"""The exceptions of ``unsnarl.cluster``, all of them ``UnsnarlError``.

Invariant: none of their messages contains a password, nor a URL that has one.
"""

import threading
from typing import NoReturn

from unsnarl.errors import UnsnarlError
from unsnarl_cluster._native import NativeError


class ClusterError(UnsnarlError):
    """Be the base of what ``unsnarl.cluster`` raises."""


class LeaseLost(ClusterError):  # noqa: N818 -- what has happened, not a mistake
    """Say that a hold can no longer be relied on: another may have it."""


class StoreUnavailable(ClusterError):  # noqa: N818
    """Say that the store has not answered for the connection's ``timeout``; another try may succeed."""


class StoreRefused(ClusterError):  # noqa: N818
    """Say that the store does not let us in or cannot serve us: a password, rights, its version, a pooler."""


class BrokenBarrierError(ClusterError, threading.BrokenBarrierError):
    """Say that a party has left the barrier, or that somebody broke it."""


_EXCEPTIONS: dict[str, type[Exception]] = {
    "unavailable": StoreUnavailable,
    "refused": StoreRefused,
    "timed out": TimeoutError,
    "broken": BrokenBarrierError,
}


def is_timeout(error: NativeError) -> bool:
    """Tell whether the caller's time was up."""
    return bool(error.args[0] == "timed out")


def reraise(error: NativeError) -> NoReturn:
    """Raise the exception that the native part's failure stands for."""
    word, message = error.args
    raise _EXCEPTIONS.get(word, ClusterError)(message) from None
