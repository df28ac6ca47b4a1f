"""Frozen dataclasses, made without :mod:`dataclasses`.

That module imports ``inspect``, ``re`` and some twenty others, and a command would find all of them loaded.
Type checkers see the real decorator; at run time the one below takes its place.

Invariant: a class decorated here behaves as under the real decorator: construction by position or by name,
defaults, equality, hash, representation, and an AttributeError on every assignment. Nothing else is supported:
no ``field``, no inheritance of fields.
"""

from __future__ import annotations

__all__ = ["dataclass"]

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from dataclasses import dataclass
    from typing import Any
else:

    def dataclass(*, frozen):
        """Return the decorator; ``frozen`` must be true."""
        assert frozen
        return _complete


def _complete(kind: type) -> type:
    fields = tuple(kind.__annotations__)
    defaults = {name: value for name, value in vars(kind).items() if name in fields}

    def init(self: object, *args: object, **named: object) -> None:
        values = {**defaults, **dict(zip(fields, args, strict=False)), **named}
        if len(args) > len(fields) or values.keys() != set(fields) or named.keys() & set(fields[: len(args)]):
            raise TypeError(f"{kind.__name__} takes {', '.join(fields)}")
        vars(self).update(values)

    def row(self: object) -> tuple[object, ...]:
        return tuple(vars(self)[name] for name in fields)

    def refuse(_self: object, name: str, *_value: object) -> None:
        raise AttributeError(f"{kind.__name__}.{name} cannot be changed")

    def equal(self: object, other: object) -> bool:
        return row(self) == row(other) if type(other) is kind else NotImplemented

    def text(self: object) -> str:
        return f"{kind.__name__}({', '.join(map('{}={!r}'.format, fields, row(self)))})"

    def hashed(self: object) -> int:
        return hash(row(self))

    changed: Any = kind
    changed.__init__, changed.__repr__ = init, text
    changed.__eq__, changed.__hash__ = equal, hashed
    changed.__setattr__ = changed.__delattr__ = refuse
    return kind
