"""Run one of CPython's own test modules with our classes patched in.

    python patched_interpreter_runner.py test_threading [NAMES...]

Spawned children import this file again: the patch is applied there as well, and
the guard keeps them from running the tests.
"""

from __future__ import annotations

import sys
import unittest

import unsnarl.patching

unsnarl.patching.patch()

if __name__ == "__main__":
    import importlib

    name = sys.argv[1]
    if len(sys.argv) > 2:
        suite = unittest.defaultTestLoader.loadTestsFromNames([f"test.{n}" for n in sys.argv[2:]])
    else:
        module = importlib.import_module(f"test.{name}")
        suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(suite)
    raise SystemExit(not result.wasSuccessful())
