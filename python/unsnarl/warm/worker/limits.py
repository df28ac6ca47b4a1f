"""Resource limits: a server's own are as wide as they may be, a worker's are its caller's.

Whoever starts a server may have set itself narrow ones; a server lives longer than that caller, and serves others.

Invariant: the imports run under the caller's limits, a successor's too, and what they set is set in each worker.
"""

from __future__ import annotations

import os
import resource
import time

from ..importing.trampolines import HIGH_FD

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

# Numbers as in asm-generic/resource.h.
_COUNT = 16
# The stack's counts at birth, and belongs to the key; where a server fails, nobody asked for a dump of it.
_LEFT = (resource.RLIMIT_STACK, resource.RLIMIT_CORE)
# Infinity, as the client writes it.
_INFINITY = 0xFFFFFFFFFFFFFFFF
# Descriptors that are left for anything but connections.
_RESERVE = 64


class Limits:
    """The limits of one server and, after a fork, of its worker."""

    def __init__(self) -> None:
        """Note those of the caller, before anything is imported."""
        self._given = self._now = [resource.getrlimit(which) for which in range(_COUNT)]
        self._of_imports: dict[int, int] = {}
        self._set = set[int]()

    def __enter__(self) -> None:
        """Have it noted what is set while this is entered, also to what it was: a caller's may be another."""
        module: Any = resource
        self._plain = setting, asking = module.setrlimit, module.prlimit

        def setrlimit(which: int, limits: tuple[int, int], /) -> None:
            setting(which, limits)
            self._set.add(int(which))

        def prlimit(pid: int, which: int, *limits: tuple[int, int] | None) -> object:
            found = asking(pid, which, *limits)
            if any(limits) and pid in (0, os.getpid()):
                self._set.add(int(which))
            return found

        module.setrlimit, module.prlimit = setrlimit, prlimit

    def __exit__(self, *problem: object) -> None:
        """Put the plain functions back."""
        module: Any = resource
        module.setrlimit, module.prlimit = self._plain

    def widen(self) -> None:
        """Note what the imports have set, and give the server all it may have."""
        self._now = [resource.getrlimit(which) for which in range(_COUNT)]
        for which, ((given, _), (soft, hard)) in enumerate(zip(self._given, self._now, strict=True)):
            if soft != given or which in self._set:
                self._of_imports[which] = soft
            if soft != hard and which not in _LEFT:
                resource.setrlimit(which, (hard, hard))
                self._now[which] = (hard, hard)

    def hand_on(self, pid: int) -> None:
        """Give a process that is to take the server's place the limits that the server was started with."""
        for which, ((soft, _), (now, hard)) in enumerate(zip(self._given, self._now, strict=True)):
            if soft != now:
                try:
                    resource.prlimit(pid, which, (soft, hard))
                except (OSError, ValueError):
                    pass  # what the imports have made of the hard one leaves no room for it

    def rehearse(self) -> None:
        """Set those of the server's first caller, but for the descriptors': the next one may bring more along."""
        usual = [(which, soft) for which, (soft, _) in enumerate(self._given) if which != resource.RLIMIT_NOFILE]
        self.put_on(usual)

    def put_on(self, limits: list[tuple[int, int]]) -> None:
        """Set the soft limits of a caller, ``(which, soft)``; raises what setrlimit raises."""
        for which, soft in limits:
            wanted = self._of_imports.get(which, resource.RLIM_INFINITY if soft == _INFINITY else soft)
            now, hard = self._now[which]
            if wanted != now:
                resource.setrlimit(which, (wanted, hard))
                self._now[which] = (wanted, hard)

    def reason(self, workers: int) -> str | None:
        """Say why a server with so many workers must not take more requests, if so."""
        descriptors, seconds = (self._now[which][1] for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU))
        if descriptors != resource.RLIM_INFINITY and workers > max(0, descriptors - HIGH_FD - _RESERVE):
            return "it has no descriptors for more"
        # The kernel kills who has used up all.
        if seconds != resource.RLIM_INFINITY and 2 * time.process_time() > seconds:
            return "half of its processor time is used"
        return None
