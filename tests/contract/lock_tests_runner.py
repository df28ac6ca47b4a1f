"""Run CPython's own `test.lock_tests` on our classes, in an interpreter of its own.

The tests are those of the running interpreter: the contract is what *it*
promises. Run as a script it prints one line of JSON with the counts.

Invariant: the classes under test are ours; everything else is CPython's.
"""

from __future__ import annotations

import sys
import unittest
from typing import Any

import reporting
from test import lock_tests

import unsnarl.sync as primitives


def _native(function: Any) -> Any:
    return staticmethod(function)


class LockTests(lock_tests.LockTests):
    locktype = _native(primitives.Lock)


class RLockTests(lock_tests.RLockTests):
    locktype = _native(primitives.RLock)


class EventTests(lock_tests.EventTests):
    eventtype = _native(primitives.Event)


class ConditionAsRLockTests(lock_tests.RLockTests):
    locktype = _native(primitives.Condition)

    def test_constructor_noargs(self) -> None:
        self.skipTest("Condition takes a lock")

    def test_recursion_count(self) -> None:
        self.skipTest("Condition does not expose _recursion_count()")

    def test_repr_count(self) -> None:
        self.skipTest("Condition does not repr the lock's count")

    def test_locked(self) -> None:
        self.skipTest("Condition has no locked() in the standard library before 3.14")


class ConditionTests(lock_tests.ConditionTests):
    condtype = _native(primitives.Condition)


class SemaphoreTests(lock_tests.SemaphoreTests):
    semtype = _native(primitives.Semaphore)


class BoundedSemaphoreTests(lock_tests.BoundedSemaphoreTests):
    semtype = _native(primitives.BoundedSemaphore)


class BarrierTests(lock_tests.BarrierTests):
    barriertype = _native(primitives.Barrier)


if __name__ == "__main__":
    raise SystemExit(reporting.run_and_report(unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])))
