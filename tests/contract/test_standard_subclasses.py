"""A program's subclass of a patched class has the private parts of the standard library's; direct objects are native.

Invariant: each test that is parametrised over both classes asserts the standard library's own behaviour too, and each
wait has a time limit.
"""

from __future__ import annotations

import abc
import queue
import threading
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

import unsnarl
from unsnarl.sync import standard

if TYPE_CHECKING:
    from tests.conftest import Programs

ORIGINALS: list[Any] = [
    threading.Condition,
    threading.Semaphore,
    threading.BoundedSemaphore,
    threading.Event,
    threading.Barrier,
    queue.Queue,
    queue.LifoQueue,
    queue.PriorityQueue,
]
PAIRS = [(original, getattr(standard, original.__name__)) for original in ORIGINALS]
OF_THREADING = PAIRS[:5]
WAIT_S = 30.0


def both(name: str) -> list[Any]:
    return [made for pair in PAIRS for made in pair if made.__name__ == name]


def arguments(base: Any) -> tuple[Any, ...]:
    return (1,) if base.__name__ == "Barrier" else ()


def lax_semaphore(base: Any) -> Any:
    """Return the class of billiard/pool.py: no error for a release too many, and the number of permits can change."""

    class Lax(base):  # type: ignore[misc]
        def shrink(self: Any) -> None:
            self._initial_value -= 1
            self.acquire()

        def grow(self: Any) -> None:
            with self._cond:
                self._initial_value += 1
                self._value += 1
                self._cond.notify()

        def release(self: Any) -> None:
            with self._cond:
                if self._value < self._initial_value:
                    self._value += 1
                    self._cond.notify_all()

        def clear(self: Any) -> None:
            while self._value < self._initial_value:
                self.release()

    return Lax


@pytest.mark.parametrize("base", both("BoundedSemaphore"))
def test_billiards_semaphore_shrinks_grows_and_clears(base: Any) -> None:
    semaphore = lax_semaphore(base)(2)
    semaphore.shrink()
    semaphore.release()
    assert (semaphore._value, semaphore._initial_value) == (1, 1)
    assert [semaphore.acquire(blocking=False) for _ in range(2)] == [True, False]
    taken: list[bool] = []
    waiter = threading.Thread(target=lambda: taken.append(semaphore.acquire(timeout=WAIT_S)), daemon=True)
    waiter.start()
    semaphore.grow()
    waiter.join(WAIT_S)
    assert taken == [True]
    semaphore.clear()
    assert semaphore._value == semaphore._initial_value == 2
    assert isinstance(semaphore, base)


@pytest.mark.parametrize("base", both("Semaphore"))
def test_a_semaphore_hands_its_permits_out_its_own_way(base: Any) -> None:
    class Greedy(base):  # type: ignore[misc]
        def take_all(self: Any) -> int:
            with self._cond:
                while self._value == 0:
                    assert self._cond.wait(WAIT_S)
                taken, self._value = self._value, 0
                return int(taken)

    semaphore: Any = Greedy(0)
    taken: list[int] = []
    waiter = threading.Thread(target=lambda: taken.append(semaphore.take_all()), daemon=True)
    waiter.start()
    semaphore.release(3)
    waiter.join(WAIT_S)
    assert (taken, semaphore._value) == ([3], 0)


@pytest.mark.parametrize("base", both("Condition"))
def test_a_condition_counts_its_waiters_and_lets_go_of_its_lock(base: Any) -> None:
    class Counted(base):  # type: ignore[misc]
        def count(self: Any) -> int:
            return len(self._waiters)

    condition: Any = Counted()
    woken: list[bool] = []
    arrived = threading.Semaphore(0)

    def wait() -> None:
        with condition:
            arrived.release()
            woken.append(condition.wait(WAIT_S))

    waiter = threading.Thread(target=wait, daemon=True)
    waiter.start()
    assert arrived.acquire(timeout=WAIT_S)
    with condition:
        assert (condition.count(), condition._is_owned()) == (1, True)
        state = condition._release_save()
        assert not condition._is_owned()
        condition._acquire_restore(state)
        assert condition._lock is not None
        condition.notify()
    waiter.join(WAIT_S)
    assert woken == [True]


@pytest.mark.parametrize("base", both("Event"))
def test_an_event_sets_its_flag_itself(base: Any) -> None:
    class Pulse(base):  # type: ignore[misc]
        def __init__(self) -> None:
            base.__init__(self)  # as older programs call it

        def toggle(self: Any) -> None:
            with self._cond:
                self._flag = not self._flag
                self._cond.notify_all()

    event: Any = Pulse()
    seen: list[bool] = []
    waiter = threading.Thread(target=lambda: seen.append(event.wait(WAIT_S)), daemon=True)
    waiter.start()
    event.toggle()
    waiter.join(WAIT_S)
    assert (seen, event.is_set(), base.is_set(event)) == ([True], True, True)


@pytest.mark.parametrize("base", both("Barrier"))
def test_a_barrier_looks_at_its_state(base: Any) -> None:
    class Seen(base):  # type: ignore[misc]
        def state(self: Any) -> tuple[int, int, int]:
            with self._cond:
                return self._count, self._state, self._parties

    barrier: Any = Seen(2)
    assert barrier.state() == (0, 0, 2)
    other = threading.Thread(target=barrier.wait, args=(WAIT_S,), daemon=True)
    other.start()
    assert barrier.wait(WAIT_S) in {0, 1}
    other.join(WAIT_S)
    assert (barrier.parties, barrier.n_waiting, barrier.broken) == (2, 0, False)


@pytest.mark.parametrize(("original", "ours"), PAIRS)
def test_a_subclass_has_all_parts_of_the_standard_object(original: Any, ours: Any) -> None:
    parts = [set(dir(type("Derived", (base,), {})(*arguments(base)))) for base in (original, ours)]
    assert parts[0] - {"__weakref__"} <= parts[1]  # a native class refers to its weak references otherwise


@pytest.mark.parametrize(("original", "ours"), OF_THREADING)
def test_a_subclass_has_no_part_that_waits_elsewhere(original: Any, ours: Any) -> None:
    derived: list[Any] = [type("Derived", (base,), {})(*arguments(base)) for base in (original, ours)]
    named = {name for name in dir(unsnarl.sync.__dict__[ours.__name__]) if not name.startswith("_")}
    assert {name for name in named if hasattr(derived[1], name)} == {
        name for name in named if hasattr(derived[0], name)
    }


@pytest.mark.parametrize("name", ["Event", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"])
def test_direct_objects_stay_native_next_to_a_subclass(name: str) -> None:
    ours = getattr(standard, name)
    type("Derived", (ours,), {})(*arguments(ours))
    direct = ours(*arguments(ours))
    assert isinstance(direct, getattr(unsnarl, name))
    assert (direct.waiting, vars(direct)) == (0, {})
    direct.statistics()


def test_native_objects_work_through_a_divided_class() -> None:
    type("Derived", (standard.BoundedSemaphore,), {})
    semaphore: Any = standard.BoundedSemaphore(1)
    with semaphore:
        assert (semaphore.value, semaphore.acquire(blocking=False)) == (0, False)
    semaphore._initial_value += 1
    semaphore.release()
    with pytest.raises(ValueError, match="too many"):
        standard.BoundedSemaphore.release(semaphore)
    with pytest.raises(AttributeError):
        semaphore._value = 3  # as before: only a subclass sets it


@pytest.mark.parametrize("base", both("Event") + both("Condition"))
def test_a_deprecated_name_warns_the_line_that_calls_it(base: Any) -> None:
    derived: Any = type("Derived", (base,), {})
    for made in (derived(), base()):
        if base.__name__ == "Event":
            with pytest.warns(DeprecationWarning, match="is_set") as caught:
                assert not made.isSet()
        else:
            with made, pytest.warns(DeprecationWarning, match="notify_all") as caught:
                made.notifyAll()
        assert caught[0].filename == __file__


def test_a_task_is_told_that_a_subclass_waits_in_threads_only() -> None:
    class Derived(standard.Event):
        pass

    with pytest.raises(TypeError, match=r"derive it from unsnarl\.Event"):
        Derived().__await__()


@pytest.mark.parametrize("base", both("Event"))
def test_a_subclass_has_a_metaclass_of_its_own_and_other_bases(base: Any) -> None:
    class Other:
        seen: ClassVar[dict[str, object]] = {}

        def __init_subclass__(cls, **keywords: object) -> None:
            cls.seen = keywords

        def locked(self) -> str:
            return "other"

        async_wait = locked

    class Derived(base, Other, colour="red", metaclass=abc.ABCMeta):  # type: ignore[misc]
        pass

    event: Any = Derived()
    event.set()
    assert (event._flag, Derived.seen, event.locked(), event.async_wait()) == (
        True,
        {"colour": "red"},
        "other",
        "other",
    )


def test_a_program_patched_from_outside_has_such_a_semaphore(programs: Programs) -> None:
    programs.write(
        "app.py",
        "import threading, unsnarl\n"
        "class Lax(threading.BoundedSemaphore):\n"
        "    def release(self):\n"
        "        with self._cond:\n"
        "            if self._value < self._initial_value:\n"
        "                self._value += 1\n"
        "                self._cond.notify_all()\n"
        "lax = Lax(1); lax.release(); lax.acquire(); lax.release(); lax.release()\n"
        "print(lax._value, isinstance(lax, threading.Semaphore))\n"
        "print(isinstance(threading.Semaphore(), unsnarl.Semaphore), isinstance(lax._cond, unsnarl.Condition))\n",
    )
    outcome = programs.unsnarl("run", "--patch", "app.py")
    assert (outcome.status, outcome.stdout) == (0, b"1 True\nTrue True\n"), outcome.complaint
