"""Checks which tools and peers are available on this machine and in the measured interpreter.

Each check returns None, or the reason against it as a clause. A check runs the tool where the existence
of a file proves nothing: pyenv has shims for versions that are not selected.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

TIMEOUT_S = 20.0
"""Seconds that a check may take."""

Reason = str | None


def _answer(command: list[str]) -> subprocess.CompletedProcess[str] | None:
    """Run a command to its end; None if it cannot be run."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None


def _works(command: list[str]) -> bool:
    done = _answer(command)
    return done is not None and done.returncode == 0


def first_line(command: list[str]) -> str:
    """Return the first line that a command prints, or an empty string if it cannot be run."""
    done = _answer(command)
    return next(iter(done.stdout.splitlines()), "").strip() if done else ""


@functools.cache
def imports(python: str, module: str) -> bool:
    """Tell whether an interpreter imports a module."""
    return _works([python, "-P", "-c", f"import {module}"])


@functools.cache
def has_verb(python: str, verb: str) -> bool:
    """Tell whether the unsnarl of an interpreter has a verb."""
    return _works([python, "-P", "-c", f"import sys, unsnarl.cli as cli; sys.exit({verb!r} not in cli.VERBS)"])


@functools.cache
def is_enabled(python: str) -> bool:
    """Tell whether `unsnarl enable` was called for the environment of an interpreter."""
    return _works([python, "-P", "-c", "import sys, unsnarl.enabled as enabled; sys.exit(not enabled.is_here())"])


@functools.cache
def other_interpreter(name: str) -> str | None:
    """Return the path of PyPy, or of another version or build of Python, on PATH or in pyenv."""
    other = OTHER_INTERPRETERS[name]
    on_path = [path for path in map(shutil.which, other.commands) if path]
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    installed = sorted(map(str, root.glob(other.pattern)), reverse=True)
    return next((path for path in (*on_path, *installed) if _works([path, "-c", other.probe])), None)


class OtherInterpreter(NamedTuple):
    """Another interpreter than the measured one."""

    commands: tuple[str, ...]
    """Its names on PATH."""
    pattern: str
    """Its paths under pyenv."""
    probe: str
    """A program that fails in any other interpreter."""


OTHER_INTERPRETERS = {
    "pypy": OtherInterpreter(
        ("pypy3", "pypy"),
        "pypy3*/bin/pypy3",
        "import sys; sys.exit('PyPy' not in sys.version or sys.version_info < (3, 8))",
    ),
    "python2.7": OtherInterpreter(
        ("python2.7",), "2.7*/bin/python2.7", "import sys; sys.exit(sys.version_info[:2] != (2, 7))"
    ),
    "free-threaded": OtherInterpreter(
        ("python3.15t", "python3.14t", "python3.13t"),
        "3.*t/bin/python3.*t",
        "import sys; sys.exit(getattr(sys, '_is_gil_enabled', lambda: True)())",
    ),
}


def _module(module: str, package: str) -> Callable[[str], Reason]:
    def check(python: str) -> Reason:
        return None if imports(python, module) else f"{package} is not installed for the measured interpreter"

    return check


def _interpreter(name: str, title: str) -> Callable[[str], Reason]:
    def check(_python: str) -> Reason:
        return None if other_interpreter(name) else f"no {title} on PATH or in pyenv"

    return check


def _verb(verb: str) -> Callable[[str], Reason]:
    def check(python: str) -> Reason:
        return None if has_verb(python, verb) else f"this unsnarl has no verb `{verb}`"

    return check


def _green(python: str) -> Reason:
    if not imports(python, "unsnarl"):
        return "unsnarl is not installed for the measured interpreter"
    return (
        None
        if imports(python, "gevent")
        else "gevent is not installed for the measured interpreter (pip install gevent)"
    )


CHECKS: dict[str, Callable[[str], Reason]] = {
    "unsnarl": _module("unsnarl._native", "unsnarl"),
    "green": _green,
    "aiologic": _module("aiologic", "aiologic"),
    "pyperf": _module("pyperf", "pyperf"),
    "ipc": _module("unsnarl.ipc", "unsnarl.ipc"),
    "warm": _verb("warm"),
    "pack": _verb("pack"),
    "pypy": _interpreter("pypy", "PyPy 3"),
    "python2.7": _interpreter("python2.7", "Python 2.7"),
    "free-threaded": _interpreter("free-threaded", "free-threaded CPython"),
}


@functools.cache
def reason_against(need: str, python: str) -> Reason:
    """Return why a requirement is not met, or None."""
    return CHECKS[need](python)


@functools.cache
def reason_against_strace() -> Reason:
    """Return why system calls cannot be counted here, or None."""
    if shutil.which("strace") is None:
        return "strace is not installed"
    if not _works(["strace", "-f", "-c", "-o", os.devnull, sys.executable, "-I", "-S", "-c", ""]):
        return "strace may not trace here"
    return None


@functools.cache
def reason_against_round_robin() -> Reason:
    """Return why SCHED_RR cannot be used here, or None."""
    probe = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    return None if _works([sys.executable, "-I", "-S", "-c", probe]) else "SCHED_RR is not allowed here"


OTHER_PROGRAMS = ("git",)
"""Programs that are started for comparison, and belong to no environment."""


def reason_against_command(python: str, name: str) -> Reason:
    """Return why a command of an interpreter's environment cannot be started, or None."""
    if command_of(python, name):
        return None
    where = "" if name in OTHER_PROGRAMS else " in the environment of the measured interpreter"
    return f"{name} is not installed{where}"


@functools.cache
def command_of(python: str, name: str) -> str | None:
    """Return the path of a console script that belongs to an interpreter's environment, or of another program."""
    if name in OTHER_PROGRAMS:
        return shutil.which(name)
    path = Path(python).parent / name
    return str(path) if os.access(path, os.X_OK) else None


def reasons_in_words(absent: Mapping[str, str]) -> list[str]:
    """Return one line for each reason, with everything that it excludes."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in absent.items():
        by_reason.setdefault(reason, []).append(name)
    return [f"{', '.join(names)}: {reason}" for reason, names in by_reason.items()]
