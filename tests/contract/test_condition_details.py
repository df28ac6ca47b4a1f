"""`wait_for` in the corner cases that the standard library defines precisely."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import unsnarl

CONDITIONS = [threading.Condition, unsnarl.Condition]


@pytest.mark.parametrize("make", CONDITIONS)
@pytest.mark.parametrize("timeout", [0, -1, 0.0])
def test_the_predicate_is_asked_again_after_no_time(make: Any, timeout: float) -> None:
    answers = [False, True]
    condition = make()
    with condition:
        assert condition.wait_for(lambda: answers.pop(0), timeout)
    assert not answers


@pytest.mark.parametrize("make", CONDITIONS)
def test_without_the_lock_it_is_refused_also_without_time(make: Any) -> None:
    with pytest.raises(RuntimeError, match="un-acquired"):
        make().wait_for(lambda: False, 0)


@pytest.mark.parametrize("make", CONDITIONS)
@pytest.mark.parametrize("timeout", [None, 0])
def test_a_subclass_waits_its_own_way(make: Any, timeout: float | None) -> None:
    class Watched(make):  # type: ignore[misc]
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            return True

    waits: list[float | None] = []
    condition = Watched()
    with condition:
        assert condition.wait_for(lambda: len(waits), timeout) == 1
    assert waits == [timeout]


@pytest.mark.parametrize("call", ["notify", "notify_all"])
@pytest.mark.parametrize("make_lock", [threading.Lock, threading.RLock])
def test_no_object_is_made_to_find_out_who_has_the_standard_lock(make_lock: Any, call: str) -> None:
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy has no tracemalloc")
    condition = unsnarl.Condition(make_lock())
    with pytest.raises(RuntimeError, match="un-acquired"):
        getattr(condition, call)()
    peaks: list[int] = []
    with condition:
        notify = getattr(condition, call)
        notify()
        tracemalloc.start()
        try:
            for _ in range(5):
                tracemalloc.reset_peak()
                before = tracemalloc.get_traced_memory()[0]
                notify()
                peaks.append(tracemalloc.get_traced_memory()[1] - before)
        finally:
            tracemalloc.stop()
    assert min(peaks) < 100, (
        "bytes; a bound method takes 120 and an AttributeError 280, and longer than the rest of the call"
    )
