"""The methods' signatures: as the standard library's, and none is missing."""

from __future__ import annotations

import inspect
import queue
from collections.abc import Iterator
from typing import Any

import pytest

import unsnarl
from unsnarl.patching import NAMES
from unsnarl.sync import standard

MORE = {
    ("Queue", "join"): ["timeout"],
    ("LifoQueue", "join"): ["timeout"],
    ("PriorityQueue", "join"): ["timeout"],
    ("Semaphore", ""): ["max_value"],
    ("BoundedSemaphore", ""): ["max_value"],
}
"""Parameters that the standard library's methods, or (without a name) classes lack."""

PATCHED = [
    (name, getattr(standard, name), vars(__import__(module))[name]) for module, names in NAMES.items() for name in names
]
OURS = [getattr(unsnarl, name) for name in unsnarl.sync.__all__ if not issubclass(getattr(unsnarl, name), Exception)]


def public_methods(kind: type) -> Iterator[str]:
    yield from (name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name)))


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    found = list(inspect.signature(function).parameters.values())
    return [(each.name, each.kind, each.default) for each in found if each.name != "self"]


@pytest.mark.parametrize(("name", "ours", "original"), PATCHED, ids=str)
def test_a_patched_class_has_the_signatures_of_the_standard_library(name: str, ours: type, original: type) -> None:
    for method in ("", *public_methods(original)):
        expected = parameters(getattr(original, method) if method else original)
        found = parameters(getattr(ours, method) if method else ours)
        more = MORE.get((name, method), [])
        assert [each for each in found if each[0] not in more] == expected, method
        assert all(each[2] is None for each in found if each[0] in more), method


@pytest.mark.parametrize("kind", [*OURS, type(unsnarl.RWLock().reader)], ids=lambda kind: kind.__name__)
def test_every_public_method_has_a_signature(kind: Any) -> None:
    for method in public_methods(kind):
        signature = inspect.signature(getattr(kind, method))
        assert next(iter(signature.parameters)) in ("self", "item", "args"), method
    assert inspect.signature(kind) is not None


@pytest.mark.parametrize("make", [queue.Queue, standard.Queue])
def test_an_item_can_be_named(make: Any) -> None:
    line = make()
    line.put_nowait(item=1)
    line.put(item=2, block=False)
    assert (line.get(block=0), line.get_nowait()) == (1, 2)
    for wrong in ((), (1, 2)):
        with pytest.raises(TypeError):
            line.put_nowait(*wrong)
