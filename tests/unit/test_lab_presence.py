"""Which other interpreters the lab finds on a machine: by name, and only if the interpreter is what the name says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from unsnarl.lab import presence
from unsnarl.lab.experiments import convoy


@pytest.fixture
def pyenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the root of a pyenv without any version, on a machine without any interpreter on PATH."""
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    presence.other_interpreter.cache_clear()
    presence.reason_against.cache_clear()
    yield tmp_path
    presence.other_interpreter.cache_clear()
    presence.reason_against.cache_clear()


def executable(path: Path, status: int) -> str:
    """Make an interpreter whose answer to every probe is its exit status."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {status}\n")
    path.chmod(0o755)
    return str(path)


def test_a_free_threaded_interpreter_of_pyenv_is_found(pyenv: Path) -> None:
    executable(pyenv / "versions" / "3.14.0" / "bin" / "python3.14", 0)
    wanted = executable(pyenv / "versions" / "3.14.0t" / "bin" / "python3.14t", 0)
    assert presence.other_interpreter("free-threaded") == wanted
    assert presence.reason_against("free-threaded", "python") is None


def test_one_on_the_path_comes_first(pyenv: Path) -> None:
    executable(pyenv / "versions" / "3.14.0t" / "bin" / "python3.14t", 0)
    wanted = executable(pyenv / "bin" / "python3.13t", 0)
    assert presence.other_interpreter("free-threaded") == wanted


def test_one_that_runs_with_a_gil_is_none(pyenv: Path) -> None:
    executable(pyenv / "bin" / "python3.14t", 1)
    assert presence.other_interpreter("free-threaded") is None
    assert presence.reason_against("free-threaded", "python") == "no free-threaded CPython on PATH or in pyenv"


def test_the_convoy_is_measured_beside_it() -> None:
    assert "free-threaded" in [variant.name for variant in convoy.EXPERIMENT.variants]
    assert {need for variant in convoy.EXPERIMENT.variants for need in variant.needs} <= presence.CHECKS.keys()
