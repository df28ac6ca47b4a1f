"""Run CPython's own `test.test_queue` on our queues, in an interpreter of its own.

Every test class there takes its classes from an attribute `queue` that is a
module; here it is a namespace of ours. Run as a script it prints one line of
JSON with the counts.
"""

from __future__ import annotations

import types
import unittest

import reporting

import unsnarl.sync as primitives
from unsnarl.sync import errors

NAMESPACE = types.SimpleNamespace(
    Queue=primitives.Queue,
    LifoQueue=primitives.LifoQueue,
    PriorityQueue=primitives.PriorityQueue,
    SimpleQueue=primitives.SimpleQueue,
    Empty=errors.Empty,
    Full=errors.Full,
    ShutDown=errors.ShutDown,
)

LAYOUT_TESTS = ("test_simplequeue_sizeof",)
"""They compare the size of the object with the fields of CPython's own structure."""


def _load() -> unittest.TestSuite:
    from test import test_queue

    suite = unittest.TestSuite()
    seen = set()
    for name, value in sorted(vars(test_queue).items()):
        if not (isinstance(value, type) and issubclass(value, unittest.TestCase)):
            continue
        # C and Py variants of a class become the same test: keep one.
        kind = name.removeprefix("C").removeprefix("Py")
        if kind in seen or not hasattr(value, "queue"):
            continue
        seen.add(kind)
        ours = type(
            f"Native{kind}",
            (value,),
            {"queue": NAMESPACE, "__module__": value.__module__, **dict.fromkeys(LAYOUT_TESTS)},
        )
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(ours))
    return suite


if __name__ == "__main__":
    raise SystemExit(reporting.run_and_report(_load()))
