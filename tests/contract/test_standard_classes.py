"""The classes that `patch()` puts in the standard library's place behave as classes written in Python do."""

from __future__ import annotations

import math
import queue
import sys
import threading
from collections import abc
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest

from unsnarl.patching import NAMES
from unsnarl.sync import standard

ARGUMENTS = {"Barrier": (1,)}
CLASSES = [
    (getattr(standard, name), vars(__import__(module))[name]) for module, names in NAMES.items() for name in names
]


def both(name: str) -> list[Any]:
    """Return the standard library's class and ours."""
    return [next(original for ours, original in CLASSES if ours.__name__ == name), getattr(standard, name)]


@pytest.mark.parametrize(("ours", "original"), CLASSES)
def test_an_instance_has_attributes_of_any_name(ours: Any, original: Any) -> None:
    for make in (original, ours):
        instance = make(*ARGUMENTS.get(make.__name__, ()))
        instance.colour = "red"
        assert vars(instance)["colour"] == "red"


def derived(base: Any, name: str) -> Any:
    """Return an instance of a subclass that sets an attribute after the base's initialisation."""

    def initialise(self: Any) -> None:
        base.__init__(self, *ARGUMENTS.get(base.__name__, ()))
        setattr(self, name, "mine")

    return type("Derived", (base,), {"__init__": initialise})()


@pytest.mark.parametrize("name", ["waiting", "value", "lock"])
@pytest.mark.parametrize(("ours", "original"), CLASSES)
def test_a_subclass_may_have_an_attribute_of_a_name_that_only_ours_have(ours: Any, original: Any, name: str) -> None:
    """The tests of cachetools have a Condition with an Event named `waiting`."""
    for base in (original, ours):
        instance = derived(base, name)
        assert getattr(instance, name) == "mine"
        assert vars(instance)[name] == "mine"


def test_without_such_an_attribute_the_native_property_is_seen() -> None:
    assert (standard.Semaphore(2).value, standard.Event().waiting, standard.BoundedSemaphore(3).value) == (2, 0, 3)


@pytest.mark.parametrize(("ours", "original"), CLASSES)
def test_a_class_says_where_it_comes_from(ours: Any, original: Any) -> None:
    assert (ours.__module__, ours.__qualname__) == (original.__module__, original.__qualname__)
    assert [base.__name__ for base in original.__mro__ if base is not object] == [
        base.__name__ for base in ours.__mro__ if base.__module__ == original.__module__
    ]


@pytest.mark.parametrize("make", [queue.Queue, standard.Queue])
def test_a_method_can_be_replaced_in_one_object(make: Callable[[], Any]) -> None:
    instance = make()
    with mock.patch.object(instance, "put") as put:
        instance.put_nowait(1)
    put.assert_called_once_with(1, block=False)
    instance.put(2)
    assert instance.get_nowait() == 2


@pytest.mark.parametrize("make", both("Queue") + both("LifoQueue") + both("PriorityQueue"))
def test_a_hook_can_be_replaced_in_one_object(make: Any) -> None:
    put: list[object] = []
    line = make()
    for item in (1, 2):
        line.put(item)
    with mock.patch.object(line, "_put", put.append):
        line.put(3)
    assert put == [3]
    line.put(4)
    left = [line.get(), line.get(), line.get()]
    assert sorted(left) == [1, 2, 4]
    line._qsize, line._get = lambda: 1, lambda: "item"
    assert line.get_nowait() == "item"
    assert line.qsize() == 1


@pytest.mark.parametrize("make", both("Queue") + both("LifoQueue") + both("PriorityQueue"))
def test_a_hook_can_be_set_before_the_queue_is_made(make: Any) -> None:
    class Early(make):  # type: ignore[misc]
        def __init__(self) -> None:
            self._get = lambda: "item"
            super().__init__(2)

    line = Early()
    line.put(1)
    assert line.get_nowait() == "item"


@pytest.mark.parametrize("make", both("Queue") + both("PriorityQueue"))
def test_a_hook_replaced_in_a_class_is_heeded_by_queues_that_are_made_then(make: Any) -> None:
    put: list[object] = []
    with mock.patch.object(make, "_put", lambda _, item: put.append(item)):
        make().put(1)
    assert put == [1]
    line = make()
    line.put(2)
    assert (put, line.get_nowait()) == ([1], 2)


@pytest.mark.parametrize("make", both("Queue"))
def test_attributes_of_a_queue_can_be_set_as_an_object_sets_them(make: Any) -> None:
    line = make()
    object.__setattr__(line, "colour", "red")
    assert line.colour == "red"


@pytest.mark.parametrize("make", both("Queue") + both("LifoQueue") + both("PriorityQueue"))
def test_a_queue_is_no_collection(make: Any) -> None:
    """Code that iterates over collections would empty the queue, or wait."""
    line = make()
    assert line
    for kind in (abc.Iterable, abc.Iterator, abc.Sized, abc.AsyncIterable, abc.Container):
        assert not isinstance(line, kind)
    for ask in (iter, len, list, lambda line: 1 in line):
        with pytest.raises(TypeError):
            ask(line)

    class Long(make):  # type: ignore[misc]
        def __len__(self) -> int:
            return int(self.qsize())

    assert not Long()


@pytest.mark.parametrize("base", both("Semaphore") + both("BoundedSemaphore"))
def test_the_end_of_a_with_calls_a_release_of_the_subclass(base: Any) -> None:
    class Counting(base):  # type: ignore[misc]
        released = 0

        def release(self, n: int = 1) -> None:
            self.released += 1
            super().release(n)

    semaphore = Counting(1)
    with semaphore:
        assert not semaphore.acquire(blocking=False)
    assert semaphore.released == 1
    assert semaphore.acquire(blocking=False)


@pytest.mark.parametrize("base", both("Condition"))
def test_notify_all_calls_a_notify_of_the_subclass(base: Any) -> None:
    class Telling(base):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.told: list[int] = []

        def notify(self, n: int = 1) -> None:
            self.told.append(n)
            super().notify(n)

    condition = Telling()
    woken: list[bool] = []

    def wait() -> None:
        with condition:
            arrived.release()
            woken.append(condition.wait(30))

    arrived = threading.Semaphore(0)
    threads = [threading.Thread(target=wait) for _ in range(2)]
    for thread in threads:
        thread.start()
        arrived.acquire()
    with condition:  # they have released the lock: they wait
        condition.notify_all()
    for thread in threads:
        thread.join()
    assert (condition.told, woken) == ([2], [True, True])


@pytest.mark.parametrize("base", both("Queue"))
def test_a_length_of_the_subclass_decides_on_its_truth(base: Any) -> None:
    class Sized(base):  # type: ignore[misc]
        def __len__(self) -> int:
            return int(self.qsize())

    instance = Sized()
    assert not instance
    instance.put(1)
    assert instance
    assert base()


@pytest.mark.parametrize("make", both("BoundedSemaphore"))
def test_the_bound_has_its_name_and_can_be_raised(make: Any) -> None:
    semaphore = make(1)
    with pytest.raises(ValueError, match="released too many times"):
        semaphore.release()
    semaphore._initial_value += 1
    semaphore.release()
    assert semaphore._initial_value == 2
    assert semaphore.acquire(blocking=False)
    assert semaphore.acquire(blocking=False)


@pytest.mark.parametrize("base", both("Semaphore"))
def test_a_subclass_has_names_of_its_own(base: Any) -> None:
    class Named(base):  # type: ignore[misc]
        def __init__(self, value: int) -> None:
            super().__init__(value)
            self._initial_value = value

    assert not hasattr(base(3), "_initial_value")
    assert Named(3)._initial_value == 3


NUMBERS = [sys.maxsize, 2**62, 2**64, 10**400, math.inf, 2.0, True]


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize("make", both("Semaphore") + both("BoundedSemaphore"))
def test_a_semaphore_takes_any_number_of_permits(make: Any, value: Any) -> None:
    semaphore = make(value)
    for _ in range(2):
        assert semaphore.acquire(blocking=False)
        semaphore.release()
        with semaphore:
            pass
    assert make(0).acquire(blocking=False) is False


# Before CPython 3.12 the standard library's own `release(n)` notifies n times, even if no party waits.
RELEASED_AT_ONCE = both("Semaphore")[0 if sys.version_info >= (3, 12) else 1 :]


@pytest.mark.parametrize("make", RELEASED_AT_ONCE)
def test_a_semaphore_is_released_any_number_of_times(make: Any) -> None:
    semaphore = make(0)
    for number in (sys.maxsize, 1, 2**70, math.inf):
        semaphore.release(number)
    with semaphore:
        semaphore.release(1.0)
    for number in (0, -1, -math.inf, 0.0, -(10**400)):
        with pytest.raises(ValueError, match="one or more"):
            semaphore.release(number)
        if number:
            with pytest.raises(ValueError, match=">= 0"):
                make(number)
    for wrong in (None, "1"):
        with pytest.raises(TypeError):
            make(wrong)


@pytest.mark.parametrize("make", both("Barrier"))
def test_a_barrier_takes_a_whole_float(make: Any) -> None:
    assert make(1.0).wait() == 0
    if make is standard.Barrier or sys.version_info >= (3, 13):  # before, the standard library takes any number
        with pytest.raises(ValueError, match=r">= 1|> 0"):
            make(0.0)


@pytest.mark.parametrize(("number", "woken"), [(2**70, 3), (math.inf, 3), (1.5, 2), (2.0, 2), (0, 0), (math.nan, 0)])
@pytest.mark.parametrize("make", both("Condition"))
def test_any_number_can_be_notified(make: Any, number: Any, woken: int) -> None:
    condition = make()
    arrived = threading.Semaphore(0)
    notified: list[bool] = []

    def wait() -> None:
        with condition:
            arrived.release()
            notified.append(condition.wait(30))

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
        arrived.acquire()
    with condition:
        condition.notify(number)
        left = len(condition._waiters)
        condition.notify_all()
    for thread in threads:
        thread.join(30)
    assert (left, notified) == (3 - woken, [True] * 3)


@pytest.mark.parametrize("make", [standard.Semaphore, standard.BoundedSemaphore])
def test_what_is_left_of_a_permit_counts_as_one(make: Any) -> None:
    """In the standard library such a semaphore bounds nothing: its number never reaches zero."""
    semaphore = make(1.5)
    assert semaphore.acquire(blocking=False)
    assert semaphore.acquire(blocking=False)
    assert not semaphore.acquire(blocking=False)
    with pytest.raises(ValueError, match=">= 0"):
        make(math.nan)


@pytest.mark.parametrize("make", both("Barrier"))
def test_all_parties_wait_while_the_action_runs(make: Any) -> None:
    seen: list[int] = []
    barrier: Any = make(2, lambda: seen.append(barrier.n_waiting))
    other = threading.Thread(target=barrier.wait, args=(30,), daemon=True)
    other.start()
    barrier.wait(30)
    other.join(30)
    assert (seen, barrier.n_waiting) == ([2], 0)


@pytest.mark.parametrize("make", both("Event"))
def test_an_event_restarts(make: Any) -> None:
    event = make()
    event.set()
    event.__init__()
    assert not event.is_set()


@pytest.mark.parametrize("make", both("Barrier"))
def test_a_barrier_restarts(make: Any) -> None:
    seen: list[int] = []
    barrier = make(2)
    barrier.abort()
    barrier.__init__(1, lambda: seen.append(1))
    assert (barrier.parties, barrier.broken, barrier.wait(), seen) == (1, False, 0, [1])


@pytest.mark.skipif(not hasattr(queue.Queue, "shutdown"), reason="the standard library's queues cannot be shut down")
@pytest.mark.parametrize("make", both("Queue"))
def test_anything_is_true_or_false(make: Any) -> None:
    line = make()
    line.put(1, 0)
    line.shutdown(1)
    assert line.empty()
