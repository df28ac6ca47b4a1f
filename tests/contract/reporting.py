"""Runs a suite of CPython's own tests and prints one line of JSON with the counts, for the test that started us.

Imported by the ``*_runner.py`` next to it, which are run by path.
"""

from __future__ import annotations

import json
import sys
import unittest


def run_and_report(suite: unittest.TestSuite) -> int:
    """Run everything; return exit status 1 if a test failed."""
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=1).run(suite)
    counts = {
        "run": result.testsRun,
        "failures": [str(test) for test, _ in result.failures],
        "errors": [str(test) for test, _ in result.errors],
        "skipped": len(result.skipped),
    }
    print(json.dumps(counts))
    return 0 if result.wasSuccessful() else 1
