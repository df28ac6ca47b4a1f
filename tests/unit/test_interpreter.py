"""What unsnarl says on an interpreter that is not CPython: the primitives work, each other part is refused in one line.

CPython takes PyPy's name here; the primitives themselves are those in pure Python.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from unsnarl.cli import VERBS
from unsnarl.interpreter import HINT, REASONS

AS_PYPY = """\
import importlib.util, sys
sys.implementation.name = "pypy"
import unsnarl
if "unsnarl._native" not in sys.modules:
    spec = importlib.util.spec_from_file_location("unsnarl._native", unsnarl.__path__[0] + "/_native.py")
    sys.modules["unsnarl._native"] = native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)
"""


def run(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", AS_PYPY + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_is_refused_with_its_reason(verb: str) -> None:
    done = run("from unsnarl.cli import main; sys.exit(main(sys.argv[1:]))", verb, "--help")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [f"error: this is PyPy {version}: {REASONS[verb]}", f"hint: {HINT}"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("unsnarl.gil.install()", REASONS["gil"]),
        ("unsnarl.gil.stats()", REASONS["gil"]),
        ("from unsnarl import ipc", REASONS["ipc"]),
        ("import unsnarl.ipc", REASONS["ipc"]),
        ("unsnarl.patch()", "its own classes cannot be replaced"),
    ],
)
def test_each_other_part_is_refused_in_the_program(statement: str, reason: str) -> None:
    code = f"try:\n    {statement}\nexcept unsnarl.UnsupportedInterpreter as error:\n    print(error.reason)"
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("this is PyPy ")
    assert reason in done.stdout


def test_the_primitives_are_those_in_pure_python() -> None:
    code = """
from unsnarl import pure
names = sorted({*pure.__all__} & {*unsnarl.sync.__all__})
assert all(getattr(unsnarl, name) is getattr(pure, name) for name in names)
assert issubclass(unsnarl.RCapacityLimiter, pure.CapacityLimiter)
with unsnarl.Once().call(unsnarl.Lock):
    print(len(names))
"""
    done = run(code)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) == 17


def test_cpython_without_the_extension_is_told_so() -> None:
    done = run("sys.implementation.name = 'cpython'; spec.loader.exec_module(native)")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: unsnarl's native extension is not installed")
