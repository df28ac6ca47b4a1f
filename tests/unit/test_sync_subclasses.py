"""Classes derived from the primitives: with an `__init__` of their own, or with the base's arguments."""

from __future__ import annotations

from typing import Any

import pytest

import unsnarl

ARGUMENTS: dict[str, tuple[Any, ...]] = {"Barrier": (2,)}
CLASSES = [
    getattr(unsnarl, name) for name in unsnarl.sync.__all__ if not issubclass(getattr(unsnarl, name), BaseException)
]


@pytest.mark.parametrize("base", CLASSES)
def test_a_subclass_has_an_init_of_its_own(base: Any) -> None:
    class Named(base):  # type: ignore[misc]
        def __init__(self, name: str, *, colour: str) -> None:
            super().__init__(*ARGUMENTS.get(base.__name__, ()))
            self.described = f"{colour} {name}"

    assert Named("door", colour="red").described == "red door"


@pytest.mark.parametrize("base", CLASSES)
def test_wrong_arguments_are_refused_in_a_subclass_without_an_init_too(base: Any) -> None:
    class Derived(base):  # type: ignore[misc]
        pass

    for make in (base, Derived):
        assert make(*ARGUMENTS.get(base.__name__, ())) is not None
        with pytest.raises(TypeError):
            make(1, None, None, 4)
        with pytest.raises(TypeError):
            make(*ARGUMENTS.get(base.__name__, ()), wrong=1)


@pytest.mark.parametrize("base", [unsnarl.Lock, unsnarl.RLock, unsnarl.RWLock, unsnarl.Flag, unsnarl.Event])
def test_a_class_without_arguments_accepts_none(base: Any) -> None:
    class Derived(base):  # type: ignore[misc]
        pass

    for make in (base, Derived):
        with pytest.raises(TypeError):
            make(1)


def test_arguments_reach_the_class_through_super() -> None:
    class Limiter(unsnarl.CapacityLimiter):
        def __init__(self, name: str, tokens: int) -> None:
            super().__init__(tokens)
            self.name = name

    class Gate(unsnarl.Latch):
        def __init__(self, name: str, count: int) -> None:
            super().__init__(count)
            self.name = name

    class Count(unsnarl.CountdownEvent):
        def __init__(self, name: str, value: int) -> None:
            super().__init__(value=value)
            self.name = name

    class Guard(unsnarl.ResourceGuard):
        def __init__(self) -> None:
            super().__init__("painting")

    assert Limiter("a", 3).total_tokens == 3
    assert (Gate("a", 3).value, Gate("a", 1).is_set()) == (3, False)
    assert (Count("a", 3).is_set(), Count("a", 0).is_set()) == (False, True)
    guard = Guard()
    with guard, pytest.raises(RuntimeError, match="already painting"):
        guard.__enter__()
    for make in (lambda: Gate("a", 0), lambda: Count("a", -1), lambda: Limiter("a", -1)):
        with pytest.raises(ValueError, match=">="):
            make()


def test_without_the_init_of_the_base_a_class_has_its_defaults() -> None:
    def bare(base: Any) -> Any:
        return type("Bare", (base,), {"__init__": lambda _self: None})()

    assert bare(unsnarl.Latch).value == 1
    assert bare(unsnarl.CountdownEvent).is_set()
    assert bare(unsnarl.CapacityLimiter).total_tokens == 1
    assert bare(unsnarl.Semaphore).value == 1
    with bare(unsnarl.ResourceGuard), bare(unsnarl.Lock), bare(unsnarl.RLock), bare(unsnarl.RWLock).reader:
        pass
