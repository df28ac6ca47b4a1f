"""The steps of ``unsnarl.run_start`` before a program's first line, with a fake scheduler that records its calls."""

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import unsnarl
from unsnarl import UnsupportedInterpreter, run_start
from unsnarl.run_settings import VARIABLE, RunSettings


@dataclass
class Notes:
    """Stands in for ``unsnarl.gil`` and for the registered functions, and records the calls."""

    installs: list[dict[str, Any]] = field(default_factory=list)
    at_exit: list[object] = field(default_factory=list)
    at_fork: list[object] = field(default_factory=list)
    refusal: Exception | None = None

    def install(self, **options: Any) -> None:
        if self.refusal:
            raise self.refusal
        self.installs.append(options)

    def uninstall(self) -> None:
        """Be there to be registered."""


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    """Replace the scheduler by one that records its calls."""
    taken = Notes()
    monkeypatch.setattr(unsnarl, "gil", taken, raising=False)
    monkeypatch.setitem(sys.modules, "unsnarl.gil", taken)

    def register(function: Callable[..., None], *arguments: object) -> None:
        taken.at_exit.append((function, *arguments))

    def register_at_fork(*, after_in_child: object) -> None:
        taken.at_fork.append(after_in_child)

    monkeypatch.setattr(atexit, "register", register)
    monkeypatch.setattr(os, "register_at_fork", register_at_fork)
    monkeypatch.delenv("UNSNARL", raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    return taken


def start(monkeypatch: pytest.MonkeyPatch, settings: RunSettings) -> None:
    """Start with some settings, which are in the environment."""
    monkeypatch.setenv(VARIABLE, settings.encode())
    run_start.start(settings.encode())


def test_the_options_reach_the_scheduler(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    start(monkeypatch, RunSettings(slice_ms=2.5, batch_share=0.4, kernel_hints=False))
    assert notes == Notes(installs=[{"slice_ms": 2.5, "batch_share": 0.4, "kernel_hints": False}])
    assert VARIABLE in os.environ


def test_a_child_takes_part(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    start(monkeypatch, RunSettings(main_pid=1, stats="main"))
    assert len(notes.installs) == 1


@pytest.mark.parametrize(
    "settings", [RunSettings(abi="cpython-27"), RunSettings(prefix="/nowhere"), RunSettings(children=False, main_pid=1)]
)
def test_settings_for_another_process_do_nothing(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, settings: RunSettings, capfd: pytest.CaptureFixture[str]
) -> None:
    start(monkeypatch, settings)
    assert notes == Notes()
    assert capfd.readouterr() == ("", "")


def test_without_children_the_settings_go_and_forks_leave(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    start(monkeypatch, RunSettings(children=False))
    assert len(notes.installs) == 1
    assert notes.at_fork == [notes.uninstall]
    assert VARIABLE not in os.environ


@pytest.mark.parametrize(("stats", "registered"), [("no", 0), ("main", 1), ("all", 1)])
def test_statistics_are_printed_at_the_end(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, stats: str, registered: int
) -> None:
    start(monkeypatch, RunSettings(stats=stats))
    assert len(notes.at_exit) == registered


@pytest.mark.parametrize(
    "refusal",
    [
        UnsupportedInterpreter("this build has no GIL", "use another"),
        ImportError("no native module"),
        RuntimeError("two\nlines"),
        OSError(1, "not permitted"),
    ],
)
def test_a_refusal_is_one_line_in_the_main_process(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, refusal: Exception, capfd: pytest.CaptureFixture[str]
) -> None:
    notes.refusal = refusal
    start(monkeypatch, RunSettings(stats="all", children=False))
    assert notes == Notes(refusal=refusal)
    said = capfd.readouterr().err
    assert said.startswith("unsnarl: the program runs without the GIL scheduler: ")
    assert said.count("\n") == 1


def test_a_refusal_is_silent_in_children(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    notes.refusal = UnsupportedInterpreter("this build has no GIL", "use another")
    start(monkeypatch, RunSettings(main_pid=1))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["1", "yes", "prefix=", "prefix=/x", "slice_ms=x prefix=/x"])
def test_settings_that_make_no_sense_are_one_line(notes: Notes, text: str, capfd: pytest.CaptureFixture[str]) -> None:
    run_start.start(text)
    assert notes == Notes()
    assert capfd.readouterr().err.count("\n") == 1


def test_without_stderr_a_refusal_is_silent(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    notes.refusal = ImportError("gone")
    monkeypatch.setattr(sys, "__stderr__", None)
    start(monkeypatch, RunSettings())
    assert notes.installs == []
