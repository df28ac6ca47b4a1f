"""Which finding explains which other one."""

from __future__ import annotations

from unsnarl.trace.findings.explained import without_explained
from unsnarl.trace.findings.finding import NOTABLE, Finding


def finding(kind: str, thread: str, place: str = "app.py:1 in work", **figures: int) -> Finding:
    return Finding(kind, NOTABLE, kind, [], thread, place, {**figures})


def kinds(*found: Finding) -> list[str]:
    return [one.kind for one in without_explained([*found])]


def test_a_thread_that_spins_in_the_library_is_in_no_long_call() -> None:
    spinning = finding("spinning", "a", in_own_loop=0)
    assert kinds(spinning, finding("long-hold", "a", "app.py:9 in work")) == ["spinning"]
    assert kinds(spinning, finding("long-hold", "b")) == ["spinning", "long-hold"]


def test_a_loop_of_its_own_is_not_all_that_a_thread_does() -> None:
    spinning = finding("spinning", "a", in_own_loop=1)
    assert kinds(spinning, finding("long-hold", "a")) == ["spinning"]
    assert kinds(spinning, finding("long-hold", "a", "app.py:9 in work")) == ["spinning", "long-hold"]


def test_the_thread_of_a_timer_does_not_poll() -> None:
    timers = finding("thread-per-timer", "Thread-1 … Thread-9")
    waits = "threading.py:363 in Condition.wait"
    assert kinds(timers, finding("polling", "Thread-5", waits)) == ["thread-per-timer"]
    assert kinds(timers, finding("polling", "poller", waits)) == ["thread-per-timer", "polling"]
    assert kinds(timers, finding("polling", "Thread-5")) == ["thread-per-timer", "polling"]
