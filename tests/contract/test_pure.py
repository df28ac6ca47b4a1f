"""The primitives in pure Python keep the promises of the native ones: every scenario, and the names.

On PyPy they are what `unsnarl` has, so the other tests of the contract are theirs too.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from distribution.result_line import cpu_model

import unsnarl
from tests.contract.test_worlds import obstacle
from tests.contract.worlds import LIBRARIES, WORLDS
from unsnarl import pure

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="test_worlds plays them here")
@pytest.mark.parametrize("world", WORLDS)
def test_scenarios(world: str) -> None:
    for library in LIBRARIES.get(world, (world,)):
        if obstacle(library):
            pytest.skip(f"{library} cannot be imported by this interpreter: {obstacle(library)}")
    command = [sys.executable, "-m", "tests.contract.pure", world, "-v"]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stdout.splitlines()[-1].startswith("ok ")


DETAILS = [
    *(f"tests/contract/test_queue_{name}.py" for name in ("details", "hooks")),
    *(
        f"tests/unit/test_sync_{name}.py"
        for name in ("clocks", "closed", "loops", "misuse", "once", "restarts", "sides", "subclasses", "variants")
    ),
]
"""Tests of details that the extension and the classes in Python have in common."""


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="they run here by themselves")
@pytest.mark.skipif("QEMU" in cpu_model(), reason="under qemu-user another pytest takes minutes to start")
def test_details() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.contract.pure", *DETAILS]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr


@pytest.mark.parametrize("name", pure.__all__)
def test_a_class_has_the_names_of_the_native_one(name: str) -> None:
    native = type(unsnarl.RWLock().reader) if name == "RWLockSide" else getattr(unsnarl, name)
    ours = getattr(pure, name)
    assert {each for each in dir(native) if not each.startswith("_")} <= set(dir(ours))
    for method in dir(native):
        if not method.startswith("_") and callable(getattr(native, method)):
            expected = inspect.signature(getattr(native, method)).parameters
            assert list(inspect.signature(getattr(ours, method)).parameters) == list(expected), method
