"""Starts the traced program, waits for it, and takes its end for our own.

The program keeps our standard streams, our process group and our terminal. Signals
that reach us alone are handed on; those a terminal sends to the group are left to
it. Invariant: whatever happens on our side, the program's exit status, or the
signal it died of, is what our caller sees.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
"""Signals that somebody sends to us and means for the program."""

FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to the program as well."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How the program ended, and what it used.

    Attributes:
        status: the exit status, or minus the signal.
        wall_s: seconds from its start to its end.
        user_s: seconds of processor time in user space, with its waited-for children.
        system_s: seconds in the kernel, likewise.
        switches: voluntary and involuntary context switches.
        faults: minor and major page faults.
        memory_kb: the largest resident set, in KiB.
    """

    status: int
    wall_s: float
    user_s: float
    system_s: float
    switches: tuple[int, int]
    faults: tuple[int, int]
    memory_kb: int


class Supervisor:
    """One program under supervision."""

    def __init__(self) -> None:
        """Supervise nothing yet."""
        self._child: subprocess.Popen[bytes] | None = None
        self._pending: list[int] = []

    def run(self, command: Sequence[str], environment: Mapping[str, str], started_ns: int) -> Ending:
        """Run a command to its end.

        Args:
            command: the words, the executable first.
            environment: all of its environment.
            started_ns: CLOCK_MONOTONIC of the start, for the time it took.

        Raises:
            OSError: it cannot be executed.
        """
        import time

        before = {name: self._take_over(name) for name in (*FORWARDED, *FROM_TERMINAL)}
        try:
            self._child = subprocess.Popen(list(command), env=dict(environment), close_fds=False)
            for number in self._pending:
                self._child.send_signal(number)
            _, status, usage = os.wait4(self._child.pid, 0)
            ended_ns = time.monotonic_ns()
            self._child.returncode = os.waitstatus_to_exitcode(status)
        finally:
            for name, handler in before.items():
                signal.signal(signal.Signals[name], handler)
        return _ending(self._child.returncode, (ended_ns - started_ns) / 1e9, usage)

    def _take_over(self, name: str) -> signal.Handlers:
        """Handle a signal until the program has ended, unless it is ignored anyway."""
        number = signal.Signals[name]
        if signal.getsignal(number) is signal.SIG_IGN:
            return signal.SIG_IGN
        signal.signal(number, self._forward if name in FORWARDED else _leave_to_program)
        return signal.SIG_DFL

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._child is None:
            self._pending.append(number)
        elif self._child.returncode is None:
            self._child.send_signal(number)


def _leave_to_program(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the terminal has sent it to the program, too."""


def _ending(status: int, wall_s: float, usage: resource.struct_rusage) -> Ending:
    return Ending(
        status=status,
        wall_s=wall_s,
        user_s=usage.ru_utime,
        system_s=usage.ru_stime,
        switches=(usage.ru_nvcsw, usage.ru_nivcsw),
        faults=(usage.ru_minflt, usage.ru_majflt),
        memory_kb=usage.ru_maxrss,
    )


def end_as(status: int) -> NoReturn:
    """End this process as a program with this status did: by the same signal, if it was one."""
    if status < 0:
        _flush()
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
        status = 128 - status
    sys.exit(status)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            continue
