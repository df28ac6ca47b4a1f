"""Runs the command once in one way and returns its time, its resources and its exit status.

The command's input is empty, its stdout is discarded and its stderr kept; it has a time limit. Ways
differ in the settings that the interpreter receives in an environment variable.

Invariant: no process of the command's session survives the time limit or an exception.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Timer

from unsnarl.child_end import wait_for_the_end
from unsnarl.run_settings import SWITCH, VARIABLE, RunSettings


@dataclass(frozen=True, slots=True)
class Way:
    """A way to run the command.

    Attributes:
        name: one word.
        what: the command that a user would type.
        settings: the settings for the interpreter, or None for the plain program.
        python_options: options for the interpreter.
    """

    name: str
    what: str
    settings: RunSettings | None = None
    python_options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: exit status (or minus the signal), seconds, switches, and its stderr."""

    status: int
    wall_s: float
    cpu_s: float
    switches: int
    complaint: str
    timed_out: bool = False


def run(way: Way, words: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Trial:
    """Run ``python WORDS...`` once.

    Raises:
        OSError: the interpreter cannot be executed.
    """
    variables = dict(environment)
    if way.settings is not None:
        variables[VARIABLE] = way.settings.encode()
    elif VARIABLE in variables:  # The environment is enabled: with the switch, a stock run loads nothing of unsnarl.
        variables[SWITCH] = "off"
    return run_command([sys.executable, *way.python_options, *words], variables, limit_s)


def run_command(command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Trial:
    """Run a command once; kill its process group at the time limit."""
    with tempfile.TemporaryFile() as errors:
        started = time.monotonic()
        child = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
        )
        late: list[bool] = []
        timer = Timer(limit_s, _kill, (child.pid, late))
        timer.daemon = True
        timer.start()
        try:
            wait_for_the_end(child.pid)
            _, status, usage = os.wait4(child.pid, 0)
        except BaseException:
            _kill(child.pid, late)
            raise
        finally:
            timer.cancel()
        wall_s = time.monotonic() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        complaint = errors.read().decode(errors="replace")
    switches = usage.ru_nvcsw + usage.ru_nivcsw
    return Trial(child.returncode, wall_s, usage.ru_utime + usage.ru_stime, switches, complaint, bool(late))


def _kill(group: int, late: list[bool]) -> None:
    late.append(True)
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
