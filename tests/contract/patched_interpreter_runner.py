"""Run one of CPython's own test modules with our classes patched in.

    python patched_interpreter_runner.py test_threading [PATTERN...]

The modules are imported before: CPython's own tests import them again and again, as copies, and a module imported
later is changed only the first time.

Spawned children import this file again: the patch is applied there as well, and the guard keeps them from running the
tests.
"""

from __future__ import annotations

import queue  # noqa: F401
import sys
import threading  # noqa: F401
import unittest

import unsnarl.patching

unsnarl.patching.patch()

if __name__ == "__main__":
    import importlib

    name, *patterns = sys.argv[1:]
    loader = unittest.TestLoader()
    loader.testNamePatterns = patterns or None
    suite = loader.loadTestsFromModule(importlib.import_module(f"test.{name}"))
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
    raise SystemExit(not result.wasSuccessful())
