"""Whether anybody could notice that the interpreter takes nothing apart at its end.

Nobody could if no live object has a finaliser, is an open file or database, or is
suspended in the middle of a function. The standard streams do not count, replaced or not: they are
flushed before. Frozen objects (``gc.freeze``) are not looked at.

Invariant: in doubt somebody could. Imports nothing but what every interpreter has
built in, and nothing of unsnarl: a pack uses it too.
"""

import _io
import gc
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

_STANDARD = ("stdin", "stdout", "stderr")
# Their ends may run code of the program's: `finally`, `with`.
_SUSPENDABLE = ("generator", "coroutine", "async_generator")
_GENERATOR: "Any" = type(_ for _ in ())
# They close a database when they are freed, and have no finaliser that tells of it.
_CLOSING = frozenset([("sqlite3", "Connection"), ("_gdbm", "gdbm"), ("_dbm", "dbm")])


def is_unobserved() -> bool:
    """Say whether nobody could notice that the teardown is left out. Raises nothing."""
    try:
        return _is_unobserved()
    except Exception:
        return False  # code of the program's own: a property, a metaclass, the proxy of a stream


def _is_unobserved() -> bool:
    harmless: set[type[object]] = set()
    # One walk, and a set for each object to be looked up in: there are many, and this is most of what it costs.
    things: list[object] = gc.get_objects()
    suspects = [thing for thing in things if type(thing) not in harmless and _is_finalised(type(thing), harmless)]
    named = (getattr(sys, attribute, None) for name in _STANDARD for attribute in (name, f"__{name}__"))
    standard = {id(layer) for stream in named for layer in _layers(stream)}
    return all(id(thing) in standard or _is_over(thing) for thing in suspects)


def _is_finalised(kind: type[object], harmless: set[type[object]]) -> bool:
    """Say whether freeing objects of this type may do something; if not, note it as harmless."""
    if hasattr(kind, "__del__") or kind.__name__ in _SUSPENDABLE:
        return True
    if any((base.__module__, base.__name__) in _CLOSING for base in kind.__mro__):
        return True
    harmless.add(kind)
    return False


def flush() -> None:
    """Flush the standard streams in use, then those the program has replaced, as their finalisers would.

    Not the latter if the new stream has taken over the old one's buffer: it closes it, and the interpreter
    drops the new one first.
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
        return  # of streams in use the interpreter tells; a finaliser says nothing


def _is_over(thing: "Any") -> bool:
    """Say of something with a finaliser whether that would do nothing."""
    if isinstance(thing, _io._IOBase):  # pyright: ignore[reportPrivateUsage] -- what all of io is made of
        try:
            return thing.closed
        except ValueError:
            return True  # its buffer has been taken from it
    if type(thing) is _GENERATOR:  # others have the name alone
        # Over, or not begun: nothing of it would run.
        return not thing.gi_suspended and not thing.gi_running
    return False


def _layers(stream: object) -> list[object]:
    layers: list[object] = [stream]
    for name in ("buffer", "raw"):
        try:
            layers.append(getattr(layers[-1], name, None))
        except Exception:
            layers.append(None)  # taken from it; or a proxy that has something against the question
    return layers
