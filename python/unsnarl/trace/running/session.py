"""One traced run: a private directory, the program, its recordings, its system calls.

The directory is next to the report, and so on the same disk; it is accessible to the user alone and
is removed after the report is written. If this command is killed, the directory remains, and
``unsnarl trace --read`` makes a report of it.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unsnarl.run_settings import VARIABLE, RunSettings
from unsnarl.trace import recordings, syscalls
from unsnarl.trace.model import Process
from unsnarl.trace.running.sampling import sampled
from unsnarl.trace.running.supervisor import Ending, Supervisor

CHUNK_BYTES = 4096
STRACE_FILE = "strace.out"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a traced run.

    Attributes:
        size_mb: MiB of records of the main process.
        scheduler: whether it runs under the scheduler.
        patch: whether its primitives are native.
        children: whether child processes are traced.
        syscalls: whether strace counts its system calls.
    """

    size_mb: int = 32
    scheduler: bool = False
    patch: bool = False
    children: bool = True
    syscalls: bool = False


class Session:
    """A directory for recordings, and the run that fills it."""

    def __init__(self, parent: Path, options: Options) -> None:
        """Create the directory.

        Raises:
            OSError: it cannot be created.
        """
        self.options = options
        self.directory = Path(tempfile.mkdtemp(prefix=".unsnarl-trace-", dir=parent)).resolve()

    def remove(self) -> None:
        """Remove the directory with its content."""
        shutil.rmtree(self.directory, ignore_errors=True)

    def run(self, words: Sequence[str], environment: Mapping[str, str]) -> Ending:
        """Run ``python WORDS...`` to its end, and record it.

        Raises:
            OSError: the interpreter cannot be executed.
        """
        command = [sys.executable, *words]
        started_ns = time.monotonic_ns()
        # The settings name the process they are for, which does not exist yet: 0 stands for
        # the first process that records.
        settings = RunSettings(
            scheduler=self.options.scheduler,
            patch=self.options.patch,
            children=self.options.children,
            trace=str(self.directory),
            trace_chunks=self.options.size_mb * 2**20 // CHUNK_BYTES,
            executed_ns=started_ns,
            main_pid=0,
        )
        strace = syscalls.strace() if self.options.syscalls else None
        if strace is not None:
            command = [strace, *syscalls.OPTIONS, "-o", str(self.directory / STRACE_FILE), *command]
        supervisor = Supervisor(is_traced=strace is not None)
        with sampled(self.directory):
            return supervisor.run(command, {**environment, VARIABLE: settings.encode()}, started_ns)

    def read(self, ending: Ending | None = None) -> tuple[recordings.Recordings, syscalls.Syscalls]:
        """Read what was recorded.

        Raises:
            UnreadableTrace: nothing was recorded, or it cannot be read.
        """
        found = recordings.read(self.directory)
        known = [] if ending is None else _known(ending)
        for process in found.processes[:1]:
            known += _futexes(process)
        names = {thread.tid: thread.label for process in found.processes for thread in process.threads}
        return found, self._syscalls(names, known)

    def _syscalls(self, names: dict[int, str], known: list[tuple[str, str]]) -> syscalls.Syscalls:
        if not self.options.syscalls:
            return syscalls.Syscalls(known=known)
        if syscalls.strace() is None:
            return syscalls.Syscalls(reason="Not counted: strace is not installed, or not in PATH.", known=known)
        try:
            with open(self.directory / STRACE_FILE, encoding="utf-8", errors="replace") as stream:
                counted = syscalls.counted(stream, names)
        except OSError:
            reason = "Not counted: strace could not trace here (ptrace is not allowed)."
            return syscalls.Syscalls(reason=reason, known=known)
        return syscalls.Syscalls(counted.reason, counted.rows, known, counted.calls)


def _known(ending: Ending) -> list[tuple[str, str]]:
    voluntary, involuntary = ending.switches
    minor, major = ending.faults
    return [
        ("wall-clock time", f"{ending.wall_s:.3f} s"),
        ("processor time, user", f"{ending.user_s:.3f} s"),
        ("processor time, kernel", f"{ending.system_s:.3f} s"),
        ("voluntary context switches", f"{voluntary:,}"),
        ("involuntary context switches", f"{involuntary:,}"),
        ("page faults, from disk", f"{major:,}"),
        ("page faults, from memory", f"{minor:,}"),
        ("largest resident set", f"{ending.memory_kb:,} KiB"),
    ]


def _futexes(process: Process) -> list[tuple[str, str]]:
    """Return the least number of futex calls that the recorded waits took, in words."""
    seconds = process.length_ns / 1e9 or 1.0
    locks, gil = syscalls.futex_calls(process)
    waits = sum(thread.waits for thread in process.threads)
    blocked = sum(thread.lock_waits for thread in process.threads)
    return [
        ("futex calls for locks, at least", f"{locks:,} ({locks / seconds:,.0f} a second, {blocked:,} waits)"),
        (
            "futex calls for the GIL, at least",
            f"{gil:,} ({gil / seconds:,.0f} a second, {gil / max(waits, 1):.1f} a wait)",
        ),
    ]


def free_bytes(directory: Path) -> int:
    """Return the free bytes on the disk of a directory."""
    room = os.statvfs(directory)
    return room.f_bavail * room.f_frsize
