"""Resource limits: the server's soft limits are raised to its hard ones, each worker gets its caller's.

The caller that starts a server may have narrow limits. The server outlives that caller and serves others.

Invariant: the imports run under their caller's limits, also in a successor. A limit that the imports set is set in
each worker.
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
# Not raised: the stack's limit counts when a process starts, and is part of the key; a crashed server should not
# dump core if its caller would not.
_LEFT = (resource.RLIMIT_STACK, resource.RLIMIT_CORE)
# Infinity, as the client writes it.
_INFINITY = 0xFFFFFFFFFFFFFFFF
# Descriptors reserved for everything but connections.
_RESERVE = 64


class Limits:
    """The limits of one server and, after the fork, of its worker."""

    def __init__(self) -> None:
        """Note the caller's limits, before the imports."""
        self._given = self._now = [resource.getrlimit(which) for which in range(_COUNT)]
        self._of_imports: dict[int, int] = {}
        self._set = set[int]()

    def __enter__(self) -> None:
        """Wrap the setting functions: note which limits are set, even to the value they had."""
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
        """Restore the plain functions."""
        module: Any = resource
        module.setrlimit, module.prlimit = self._plain

    def widen(self) -> None:
        """Note what the imports have set, and raise the server's soft limits to the hard ones."""
        self._now = [resource.getrlimit(which) for which in range(_COUNT)]
        for which, ((given, _), (soft, hard)) in enumerate(zip(self._given, self._now, strict=True)):
            if soft != given or which in self._set:
                self._of_imports[which] = soft
            if soft != hard and which not in _LEFT:
                resource.setrlimit(which, (hard, hard))
                self._now[which] = (hard, hard)

    def hand_on(self, pid: int) -> None:
        """Set the limits of the successor to those with which the server was started."""
        for which, ((soft, _), (now, hard)) in enumerate(zip(self._given, self._now, strict=True)):
            if soft != now:
                try:
                    resource.prlimit(pid, which, (soft, hard))
                except (OSError, ValueError):
                    pass  # the imports have lowered the hard limit below it

    def rehearse(self) -> None:
        """Apply the first caller's limits, except for descriptors: the next caller may hand over more of them."""
        usual = [(which, soft) for which, (soft, _) in enumerate(self._given) if which != resource.RLIMIT_NOFILE]
        self.apply(usual)

    def apply(self, limits: list[tuple[int, int]]) -> None:
        """Set a caller's soft limits, ``(which, soft)``. Raises what setrlimit raises."""
        for which, soft in limits:
            wanted = self._of_imports.get(which, resource.RLIM_INFINITY if soft == _INFINITY else soft)
            now, hard = self._now[which]
            if wanted != now:
                resource.setrlimit(which, (wanted, hard))
                self._now[which] = (wanted, hard)

    def reason(self, workers: int) -> str | None:
        """Return in words why a server with this many workers must not take more requests, or None."""
        descriptors, seconds = (self._now[which][1] for which in (resource.RLIMIT_NOFILE, resource.RLIMIT_CPU))
        if descriptors != resource.RLIM_INFINITY and workers > max(0, descriptors - HIGH_FD - _RESERVE):
            return "it has no descriptors for more"
        # The kernel kills a process that has used all of it.
        if seconds != resource.RLIM_INFINITY and 2 * time.process_time() > seconds:
            return "half of its processor time is used"
        return None
