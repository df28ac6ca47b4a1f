"""``unsnarl doctor``: parses the command line, runs the examination, and prints the diagnosis."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unsnarl import enablement
from unsnarl.cli import ending
from unsnarl.cli.failure import CommandError, removed_directory
from unsnarl.cli.program.arguments import COMMAND, FILE, MODULE, RunRequest, parse_for
from unsnarl.cli.program.launch import environment_as_given, is_hooked
from unsnarl.cli.program.target import python_words
from unsnarl.cli.result import show
from unsnarl.run_settings import VARIABLE, is_switched_off

if TYPE_CHECKING:
    from unsnarl.doctor.diagnosis import Diagnosis
    from unsnarl.doctor.packing import Packable

RUNS, BUDGET_S, LIMIT_S = 20, 60.0, 120.0

_USAGE_TEXT = """\
usage: unsnarl doctor [OPTIONS...] [--] COMMAND [ARGUMENTS...]

Run a Python program several times, stock and with each remedy in random order,
and trace it. Report where its time goes, what each remedy gains, or why none
helps.

Runs go on until each remedy is judged, which takes 7 runs or more of each way,
or until the time is spent. Of examinations of remedies that change nothing, at
most 5 % call one faster or slower. What is not decided is "too few to judge".

The program runs with empty input, its output is discarded, and each run must do
the same: there are up to 150 runs. Targets as for `unsnarl run`.

options:
  --runs N       runs of each way at most, from 2 to 100 (default 20)
  --seconds N    time for all timed runs; each way has at least two (default 60)
  --limit N      seconds one run may take (default 120)
  --json         print the diagnosis as JSON
  -h, --help     this text
"""
_HELP = "see `unsnarl doctor --help`"


@dataclass(slots=True)
class DoctorRequest:
    """A parsed command line of ``unsnarl doctor``."""

    runs: int = RUNS
    budget_s: float = BUDGET_S
    limit_s: float = LIMIT_S
    as_json: bool = False


def main(arguments: list[str]) -> int:
    """Carry ``unsnarl doctor ARGUMENTS`` out.

    Raises:
        CommandError: the command line is invalid, or the program cannot be examined.
    """
    request, run = parse(arguments)
    if run.wants_help:
        return show(_USAGE_TEXT)
    words = python_words(run)
    if is_switched_off():
        raise CommandError("UNSNARL=off is set, so every way would be stock", "unset UNSNARL for the examination", 1)
    if not is_hooked(not run.python_flags & set("Is")):
        raise CommandError(
            "the remedies cannot be tried: unsnarl.pth is in no site-packages the program reads",
            f"install unsnarl with `{sys.executable} -m pip install unsnarl`",
            1,
        )
    from unsnarl.doctor import view
    from unsnarl.doctor.diagnosis import Undiagnosable

    try:
        diagnosis = _diagnosed(request, run, words)
    except Undiagnosable as error:
        raise CommandError(error.reason, error.hint, 1) from None
    except OSError as error:
        raise removed_directory() or CommandError(
            f"cannot examine the command: {error.strerror}",
            "check the free space in the directory for temporary files",
            1,
        ) from None
    finally:
        _progress("")
    return show(view.data(diagnosis) if request.as_json else view.text(diagnosis, _columns()))


def _diagnosed(request: DoctorRequest, run: RunRequest, words: list[str]) -> Diagnosis:
    from unsnarl.doctor.diagnosis import Examination

    script = _script(run, words)
    command = [script, *run.arguments] if script else []
    packable = _packable(run, script)
    environment, enabled = _environment()
    examination = Examination(words, command, environment, request.limit_s, _progress, packable)
    with ending.by_exception():
        diagnosis = examination.diagnose(request.runs, request.budget_s)
    diagnosis.enabled = enabled
    return diagnosis


def _environment() -> tuple[dict[str, str], str]:
    """Return the environment of the runs, and the programs for which unsnarl is enabled in it, if any."""
    environment = environment_as_given()
    enabled = enablement.find()
    if enabled is None:
        return environment, ""
    # Present and empty: the startup file of `unsnarl enable` then leaves the runs alone.
    return {**environment, VARIABLE: ""}, enabled.described


def _columns() -> int:
    """Return the width of stdout: COLUMNS, or that of the terminal, or 80 for a pipe."""
    return shutil.get_terminal_size((80, 24)).columns


def _script(run: RunRequest, words: list[str]) -> str:
    """Return the path of the Python script that a command line names, or an empty string.

    With options of python, no script is equivalent to the command line.
    """
    from unsnarl.cli.program import console_script

    path = os.path.abspath(words[len(words) - len(run.arguments) - 1])
    if run.kind not in (COMMAND, FILE) or run.python_words or not os.path.isfile(path):
        return ""
    return path if console_script.interpreter_of(path) is not None else ""


def _packable(run: RunRequest, script: str) -> Packable:
    """Return the part of a command line that can have a pack."""
    from unsnarl.cli.program import console_script
    from unsnarl.doctor.packing import Packable

    if run.kind == MODULE and run.python_words == ["-m", run.target]:
        return Packable(("-m", run.target), tuple(run.arguments))
    interpreter = console_script.interpreter_of(script) if script else None
    return Packable((script,), tuple(run.arguments), tuple(interpreter.flags)) if interpreter else Packable()


def parse(words: list[str]) -> tuple[DoctorRequest, RunRequest]:
    """Parse the words after ``unsnarl doctor``.

    Raises:
        CommandError: the words are invalid; its status is 2.
    """
    request = DoctorRequest()

    def take(name: str, attached: str | None, rest: list[str]) -> bool:
        if name == "--json" and attached is None:
            request.as_json = True
        elif name == "--runs":
            request.runs = int(_number(name, attached, rest, 2, 100))
        elif name == "--seconds":
            request.budget_s = _number(name, attached, rest, 0, 86400)
        elif name == "--limit":
            request.limit_s = _number(name, attached, rest, 0.1, 86400)
        else:
            raise CommandError(f"unknown option {name}, in `unsnarl doctor`", _HELP)
        return True

    def take_unless_help(name: str, attached: str | None, rest: list[str]) -> bool:
        return name != "--check-hash-based-pycs" and take(name, attached, rest)

    return request, parse_for("doctor", words, take_unless_help)


def _number(name: str, attached: str | None, rest: list[str], low: float, high: float) -> float:
    text = attached if attached is not None else rest.pop() if rest else ""
    try:
        number = float(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise CommandError(f"{name} takes a number from {low:g} to {high:g}, not {text!r}", _HELP)
    return number


def _progress(line: str) -> None:
    """Show the current step in a transient line, on a terminal only."""
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{line}")
        sys.stderr.flush()
