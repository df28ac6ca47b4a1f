"""The schema of a results file, and a check of a file against it.

A shape is a type, a tuple of types, a list with the shape of every element (``Some``: at least one), or a
mapping of required names to their shapes (``Maybe``: optional). Additional names are allowed.
Invariant: a report can use a value that has its shape without checking types again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, cast


class Maybe(NamedTuple):
    """The shape of an optional value."""

    shape: Any


class Some(NamedTuple):
    """The shape of every element of a list that must not be empty."""

    shape: Any


NUMBER = (int, float)
OPTIONAL_NUMBER = (int, float, type(None))

RESULTS: dict[str, Any] = {
    "experiment": {
        **dict.fromkeys(("name", "source", "title", "question", "reading"), str),
        "figures": Some({"name": str, "title": str, "unit": str, "is_better_higher": bool}),
        "variants": Some({"name": str, "title": str}),
        "cases": [{"name": str, "series": str, "size": OPTIONAL_NUMBER, "confinement": str, "is_traced": bool}],
    },
    "machine": {
        "python": {
            **dict.fromkeys(("version", "implementation", "compiler"), str),
            **dict.fromkeys(("pgo", "lto", "shared"), bool),
        },
        **dict.fromkeys(("cpu", "architecture", "kernel", "libc", "taken"), str),
        "cores": int,
        "versions": Maybe(dict),
    },
    "absent": dict,
    "commands": Maybe([str]),
    "runs": [
        {
            "case": str,
            "variant": str,
            "pair": int,
            "figures": Maybe(dict),
            "failed": Maybe(str),
            "late_s": Maybe(NUMBER),
            "is_spared": Maybe(bool),
        }
    ],
}


def misfit(value: Any, wanted: Any, name: str = "the file") -> str | None:
    """Return in words the first part that does not have its shape, or None."""
    if isinstance(wanted, dict):
        return _misfit_of_names(value, cast("dict[str, Any]", wanted), name)
    if isinstance(wanted, Some):
        return f"there are no {name}" if value == [] else _misfit_of_list(value, wanted.shape, name)
    if isinstance(wanted, list):
        return _misfit_of_list(value, cast("Sequence[Any]", wanted)[0], name)
    return None if isinstance(value, wanted) else f"{name} is {_kind(value)}"


def _misfit_of_names(value: Any, wanted: dict[str, Any], name: str) -> str | None:
    if not isinstance(value, dict):
        return f"{name} is {_kind(value)}"
    there = cast("dict[str, Any]", value)
    for part, shape in wanted.items():
        if part not in there:
            if isinstance(shape, Maybe):
                continue
            return f"{name} has no {part!r}"
        found = misfit(there[part], shape.shape if isinstance(shape, Maybe) else shape, f"{part!r} of {name}")
        if found is not None:
            return found
    return None


def _misfit_of_list(value: Any, wanted: Any, name: str) -> str | None:
    if not isinstance(value, list):
        return f"{name} is {_kind(value)}"
    elements = cast("Sequence[Any]", value)
    found = (misfit(element, wanted, f"element {at} of {name}") for at, element in enumerate(elements))
    return next((one for one in found if one is not None), None)


def _kind(value: Any) -> str:
    return "null" if value is None else f"of the wrong type ({type(value).__name__})"
