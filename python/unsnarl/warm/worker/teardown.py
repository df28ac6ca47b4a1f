"""Teardown check: decides whether the end of the interpreter is observable, so whether it may be skipped.

It is not observable if no live object has a finaliser, is an open file or database, or is a suspended generator or
coroutine. The standard streams do not count, replaced or not: they are flushed before. Frozen objects (``gc.freeze``)
are not examined.

Invariant: in doubt the end is observable. This file imports only modules that every interpreter has built in, and
nothing of unsnarl: a pack uses it too.
"""

import _io
import gc
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

_STANDARD = ("stdin", "stdout", "stderr")
# Freeing a suspended one may run code of the program: `finally`, `with`.
_SUSPENDABLE = ("generator", "coroutine", "async_generator")
_GENERATOR: "Any" = type(_ for _ in ())
# Types that close a database when they are freed, without a visible finaliser.
_CLOSING = frozenset([("sqlite3", "Connection"), ("_gdbm", "gdbm"), ("_dbm", "dbm")])


def is_unobserved() -> bool:
    """Return whether the teardown can be skipped unnoticed. Raises nothing."""
    try:
        return _is_unobserved()
    except Exception:
        return False  # raised by the program's code: a property, a metaclass, a proxy of a stream


def _is_unobserved() -> bool:
    harmless: set[type[object]] = set()
    # One walk over all objects, with a set of harmless types: the walk is most of the cost.
    things: list[object] = gc.get_objects()
    suspects = [thing for thing in things if type(thing) not in harmless and _is_finalised(type(thing), harmless)]
    named = (getattr(sys, attribute, None) for name in _STANDARD for attribute in (name, f"__{name}__"))
    standard = {id(layer) for stream in named for layer in _layers(stream)}
    return all(id(thing) in standard or _is_finished(thing) for thing in suspects)


def _is_finalised(kind: type[object], harmless: set[type[object]]) -> bool:
    """Return whether freeing an object of this type may run code; if not, add the type to the harmless ones."""
    if hasattr(kind, "__del__") or kind.__name__ in _SUSPENDABLE:
        return True
    if any((base.__module__, base.__name__) in _CLOSING for base in kind.__mro__):
        return True
    harmless.add(kind)
    return False


def flush() -> None:
    """Flush the standard streams in use, then those that the program has replaced, as their finalisers would.

    A replaced stream whose buffer the new one has taken over is not flushed: the interpreter frees the new stream
    first, which closes the buffer.
    """
    for name in _STANDARD[1:]:
        _flush(getattr(sys, name, None))
    for name in _STANDARD[1:]:
        new, old = getattr(sys, name, None), getattr(sys, f"__{name}__", None)
        if new is not old and _layers(new)[1] is not _layers(old)[1]:
            _flush(old)


def _flush(stream: "Any") -> None:
    try:
        if stream is not None:
            stream.flush()
    except Exception:
        return  # the interpreter reports failures of streams in use; a finaliser is silent


def _is_finished(thing: "Any") -> bool:
    """Return whether the finaliser of an object would do nothing."""
    if isinstance(thing, _io._IOBase):  # pyright: ignore[reportPrivateUsage] -- what all of io is made of
        try:
            return thing.closed
        except ValueError:
            return True  # its buffer was detached
    if type(thing) is _GENERATOR:  # other types only have the same name
        # Finished or not begun: none of its code would run.
        return not thing.gi_suspended and not thing.gi_running
    return False


def _layers(stream: object) -> list[object]:
    layers: list[object] = [stream]
    for name in ("buffer", "raw"):
        try:
            layers.append(getattr(layers[-1], name, None))
        except Exception:
            layers.append(None)  # detached, or a proxy that raises
    return layers
