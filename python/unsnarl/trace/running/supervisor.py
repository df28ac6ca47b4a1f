"""Starts the traced program, waits for its end, and ends with the same status or signal.

The program inherits the standard streams, the process group and the terminal. Signals sent to the
supervisor are forwarded to the program itself, not to its tracer. Signals that the terminal sends to
the whole group are not forwarded, since the program receives them as well.

Invariant: the caller sees the program's exit status, or the signal that ended it, whatever happens
in the supervisor.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from unsnarl.child_end import wait_for_the_end
from unsnarl.signal_handlers import replaced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCONT")
"""Signals that are sent to the supervisor and meant for the program."""

FROM_TERMINAL = ("SIGINT", "SIGQUIT")
"""Signals that a terminal sends to the program, too."""

PAUSE_S = 0.01
"""Seconds between two checks whether the tracer has started the program."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of the program, and the resources it used.

    Attributes:
        status: the exit status, or minus the signal.
        wall_s: seconds from its start to its end.
        user_s: seconds of processor time in user space, including reaped children.
        system_s: seconds of processor time in the kernel, likewise.
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

    def __init__(self, *, is_traced: bool = False) -> None:
        """Create a supervisor without a program.

        Args:
            is_traced: the command is a tracer that runs the program as its child.
        """
        self._is_traced = is_traced
        self._child = 0
        self._has_ended = False
        self._pending: list[int] = []

    def run(self, command: Sequence[str], environment: Mapping[str, str], started_ns: int) -> Ending:
        """Run a command to its end, forwarding signals; earlier handlers are restored afterwards.

        Args:
            command: the words, the executable first.
            environment: its complete environment.
            started_ns: CLOCK_MONOTONIC at the start, for the elapsed time.

        Raises:
            OSError: it cannot be executed.
        """
        forwarded = {signal.Signals[name]: self._forward for name in FORWARDED}
        from_terminal = {signal.Signals[name]: self._forward_unless_terminal for name in FROM_TERMINAL}
        with replaced({**forwarded, **from_terminal}):
            child = subprocess.Popen(list(command), env=dict(environment), close_fds=False)
            self._child = child.pid
            while self._pending:
                self._send(self._pending.pop(0))
            wait_for_the_end(child.pid)
            # The pid stays valid until the child is reaped; from _has_ended on, no handler uses it.
            ended_ns = time.monotonic_ns()
            self._has_ended = True
            _, status, usage = os.wait4(child.pid, 0)
            child.returncode = os.waitstatus_to_exitcode(status)
        return _ending(child.returncode, (ended_ns - started_ns) / 1e9, usage)

    def _forward(self, number: int, _frame: FrameType | None) -> None:
        if self._child:
            self._send(number)
        else:
            self._pending.append(number)

    def _forward_unless_terminal(self, number: int, frame: FrameType | None) -> None:
        """Forward a signal unless the terminal sent it, which the program has received as well."""
        if not _is_in_foreground():
            self._forward(number, frame)

    def _send(self, number: int) -> None:
        if self._has_ended:
            return
        receiver = self._traced() if self._is_traced else self._child
        if receiver is not None:
            with suppress(OSError):  # the program has ended, or changed its user
                os.kill(receiver, number)

    def _traced(self) -> int | None:
        """Wait until the tracer runs the program and return its pid; None if the tracer ends first.

        The tracer would not forward a signal. Before the program, it starts children that probe the
        kernel's features; these still run the tracer's own executable.
        """
        while not os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            try:
                with open(f"/proc/{self._child}/task/{self._child}/children", encoding="ascii") as stream:
                    children = [int(word) for word in stream.read().split()]
            except OSError:
                return self._child  # a kernel without this list
            for child in children:
                if _is_another_program(child, self._child):
                    return child
            time.sleep(PAUSE_S)
        return None


def _is_another_program(pid: int, tracer: int) -> bool:
    """Tell whether a process is alive and runs a different executable than its tracer."""
    try:
        return not os.path.samefile(f"/proc/{pid}/exe", f"/proc/{tracer}/exe")
    except PermissionError:
        return True  # a set-user-ID program: unlike the tracer's, its link must not be read
    except OSError:
        return False


def _is_in_foreground() -> bool:
    """Tell whether this process is in the foreground of its terminal, and so receives Ctrl-C."""
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False  # no terminal
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


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
    """End this process with a program's status: by the same signal, if a signal ended the program."""
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
