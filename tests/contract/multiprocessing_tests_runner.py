"""Run CPython's own tests of multiprocessing's primitives, plain or on ours.

    python multiprocessing_tests_runner.py plain|ours fork|spawn [CLASS]...

Prints one line of JSON: outcome by test. Children that are spawned import this file again, and
are patched then. Invariant: everything but the primitives is CPython's.
"""

from __future__ import annotations

import json
import os
import sys
import unittest
from typing import Any

CLASSES = ("Lock", "Semaphore", "Condition", "Event", "Barrier", "Queue")
VARIABLE = "UNSNARL_TEST_PRIMITIVES"

if __name__ == "__main__" and len(sys.argv) > 1:
    os.environ[VARIABLE] = sys.argv[1]
if os.environ.get(VARIABLE) == "ours":
    from unsnarl import process_patching

    process_patching.patch()


class _Result(unittest.TextTestResult):
    """Remember every outcome."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.outcomes: dict[str, str] = {}

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802 - unittest's name
        self.outcomes[test.id().rpartition(".")[2]] = "passed"
        super().startTest(test)

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        self.outcomes[test.id().rpartition(".")[2]] = "failed"
        super().addFailure(test, err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:  # noqa: N802 - unittest's name
        self.outcomes[test.id().rpartition(".")[2]] = "failed"
        super().addError(test, err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802 - unittest's name
        self.outcomes[test.id().rpartition(".")[2]] = "skipped"
        super().addSkip(test, reason)


def main() -> None:
    """Run the tests of the classes named."""
    from test import _test_multiprocessing as tests

    names = sys.argv[3:] or CLASSES
    namespace: dict[str, Any] = {"__name__": "__main__"}
    tests.install_tests_in_module_dict(namespace, sys.argv[2])
    suite = unittest.TestSuite()
    for name in names:
        case = namespace[f"WithProcessesTest{name}"]
        globals()[case.__name__] = case
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(case))
    namespace["setUpModule"]()
    runner = unittest.TextTestRunner(stream=sys.stderr, resultclass=_Result, verbosity=2)
    result: Any = runner.run(suite)
    print(json.dumps(result.outcomes), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
