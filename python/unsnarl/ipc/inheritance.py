"""Pickles a primitive for a child: by name, or by the descriptor of its memory.

A primitive with a name can be pickled at any time. A primitive without a name lives in anonymous memory that only
this process and its descendants can reach, so it can be pickled only while a child is being started (as
multiprocessing's own). A child by fork already has it.

If a named primitive with a number (parties, permits, room) no longer exists when it is unpickled, it is not created
again: `SegmentRefused`.

Invariant: a descriptor is handed to a child once, however many primitives lie in it.
"""

from __future__ import annotations

import os
from typing import Any, cast

from unsnarl._native import ipc_directory


def reduce(primitive: Any) -> tuple[Any, ...]:
    """Return what pickle needs.

    Raises:
        RuntimeError: it has no name, and no child is being started.
    """
    cls = primitive.__class__
    extra = _extra(primitive)
    allocation = primitive._allocation()
    if allocation is None:
        return _by_name, (cls, primitive.name, extra)
    descriptor, page, pages = allocation
    return _by_descriptor, (cls, _handed_over(primitive, descriptor), page, pages, extra)


def _extra(primitive: Any) -> tuple[Any, ...]:
    """Return the state that lies outside shared memory."""
    kind = {base.__name__ for base in type(primitive).__mro__}
    if "Barrier" in kind:
        return (primitive._action, primitive._timeout)
    if "Condition" in kind:
        return (primitive._lock,)
    return ()


def _handed_over(primitive: object, descriptor: int) -> Any:
    from multiprocessing.context import assert_spawning, get_spawning_popen

    try:
        assert_spawning(primitive)
    except RuntimeError:
        raise RuntimeError(
            f"{type(primitive).__name__} objects without a name should only be shared between processes through "
            "inheritance; give it a name to send it anywhere"
        ) from None
    popen = cast("Any", get_spawning_popen())
    if popen.method == "forkserver":
        from multiprocessing import popen_forkserver

        known = popen._fds
        return cast("Any", popen_forkserver)._DupFd(
            known.index(descriptor) if descriptor in known else popen.duplicate_for_child(descriptor)
        )
    from multiprocessing import popen_spawn_posix

    if descriptor not in popen._fds:
        popen.duplicate_for_child(descriptor)
    return cast("Any", popen_spawn_posix)._DupFd(descriptor)


_MADE_TO_MEASURE = frozenset(("Barrier", "Semaphore", "CountdownEvent", "BytesQueue"))
"""Kinds that a new segment of the same name could not replace: its numbers would differ."""


def _by_name(cls: Any, name: str, extra: tuple[Any, ...]) -> Any:
    path = os.path.join(ipc_directory(), f"unsnarl-{os.geteuid()}-{name}")
    if _MADE_TO_MEASURE & {base.__name__ for base in cls.__mro__} and not os.path.lexists(path):
        from unsnarl.ipc.errors import SegmentRefused

        raise SegmentRefused(
            f"the {cls.__name__} {name!r} is gone: its last user has left it",
            "keep it open in one process until the others have it",
        )
    if cls.__name__ == "Barrier":
        action, timeout = extra
        return cls(1, action, timeout, name=name)
    return cls(*extra, name=name)


def _by_descriptor(cls: Any, descriptor: Any, page: int, pages: int, extra: tuple[Any, ...]) -> Any:
    return cls._inherit((descriptor.detach(), page, pages), *extra)
