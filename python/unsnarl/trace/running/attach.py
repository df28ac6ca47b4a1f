"""Records a running process for some seconds, through ``sys.remote_exec`` (PEP 768).

The process runs two small scripts at safe points of its main thread: one starts a recording,
the other ends it. The process must have the same minor version of CPython as this one, at least
3.14, and the kernel must allow this process to write into it (ptrace rules).

Raises ``NotAttachable`` with a reason and a hint, and leaves the process unchanged then.

Invariants: a script exists until the process can no longer run it, since the process would
otherwise print an error; and the recording ends however this command ends, except by SIGKILL.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path

from unsnarl.errors import HintedError
from unsnarl.trace.running import handover
from unsnarl.trace.running.sampling import sampled
from unsnarl.trace.traced import recording

TIMEOUT_S = 10.0
"""Seconds the main thread of the process may take to reach a safe point."""

PAUSE_S = 0.02

SCRIPT, FAILURE = "begin.py", "failure"
"""Files in the directory: the script that starts the recording, and the reason why it failed."""

FAILURE_BYTES = 4096
"""The most that is read of the failure file."""

_BEGIN = """\
import sys
sys.path.insert(0, {package!r})
try:
    from unsnarl.run_settings import RunSettings
    from unsnarl.trace.traced import recording
    recording.attach(RunSettings(trace={directory!r}, trace_chunks={chunks}, children=False))
except BaseException as error:
    try:
        with open({failure!r}, "w") as stream:
            stream.write(f"{{type(error).__name__}}: {{error}}")
    except OSError:
        pass  # the tracer has ended and has removed its directory
finally:
    sys.path.remove({package!r})
"""

_END = str(Path(recording.__file__).with_name("detachment.py"))
"""An installed file, so it still exists if the process runs it late."""

_NOTHING = os.devnull
"""Replaces a script that the process has not run yet: a process holds one script at a time."""


class NotAttachable(HintedError):  # noqa: N818 -- said of the process
    """Say why a process cannot be recorded; the process is unchanged."""


def record(pid: int, directory: Path, seconds: float, chunks: int, owner: handover.Owner | None = None) -> None:
    """Record a process for some seconds, or until KeyboardInterrupt, into an empty directory.

    Args:
        pid: the process.
        directory: a directory of this user, which is given to ``owner``.
        seconds: the length of the recording.
        chunks: 4 KiB chunks of the recording.
        owner: the process's user, if root records another user's process.

    Raises:
        OSError: the directory cannot be written to.
        NotAttachable: the process cannot be recorded.
        KeyboardInterrupt: interrupted before the recording began; the process will not begin one.
    """
    execute = _remote_exec()
    _check_process(pid)
    _write_script(directory, chunks)
    if owner is not None:
        _hand_over(directory, owner, pid)
    try:
        _begin(execute, pid, directory)
    except BaseException as reason:
        _withdraw(execute, pid, directory)
        if isinstance(reason, KeyboardInterrupt) and _has_recording(directory):
            return
        raise
    try:
        # What another user controls is neither followed nor written to.
        with sampled(directory) if owner is None else nullcontext():
            _sleep(seconds, pid)
    except KeyboardInterrupt:
        pass  # the user ends the recording early
    finally:
        _end(execute, pid, directory)


def _write_script(directory: Path, chunks: int) -> None:
    """Write the script that starts the recording, readable under any umask, before the directory changes hands."""
    package, failure = str(Path(__file__).parents[3]), str(directory / FAILURE)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(directory / SCRIPT, flags, 0o644), "w", encoding="utf-8") as stream:
        os.fchmod(stream.fileno(), 0o644)
        stream.write(_BEGIN.format(package=package, directory=str(directory), chunks=chunks, failure=failure))


def _hand_over(directory: Path, owner: handover.Owner, pid: int) -> None:
    try:
        handover.give(directory, owner)
    except handover.NotReachable as closed:
        raise NotAttachable(
            f"the user of process {pid} has no access to {str(closed)!r}, which the process needs to be recorded",
            "install unsnarl where every user can read it, and set TMPDIR to a directory that every user can enter",
        ) from None
    except OSError as error:
        raise NotAttachable(
            f"the user of process {pid} cannot be given a directory: {error.strerror}",
            "run as root, outside of a sandbox",
        ) from None


def _begin(execute: Callable[[int, str], None], pid: int, directory: Path) -> None:
    failure = directory / FAILURE
    _execute(execute, pid, str(directory / SCRIPT))
    if not _wait(lambda: os.path.lexists(failure) or _has_recording(directory), pid):
        if not _is_alive(pid):
            raise NotAttachable(f"process {pid} ended before it began to record", "attach to it earlier")
        raise NotAttachable(
            f"process {pid} did not start to record within {TIMEOUT_S:g} s",
            "its main thread is in a call that has not returned to Python; try again when the process is active",
        )
    if os.path.lexists(failure):
        raise NotAttachable(f"process {pid} cannot be recorded: {_read_failure(failure)}", "see `unsnarl gil probe`")


def _read_failure(path: Path) -> str:
    """Return what the process wrote; its user can put anything in that place, a link or a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(handle, FAILURE_BYTES).decode(errors="replace")
        finally:
            os.close(handle)
    except OSError:
        return "it does not say why"


def _end(execute: Callable[[int, str], None], pid: int, directory: Path) -> None:
    """End the recording; a process that is blocked in a call ends it when the call returns."""
    with suppress(NotAttachable):  # the process has ended, and its recording with it
        _execute(execute, pid, _END)
        _wait((directory / recording.DETACHED).exists, pid)


def _withdraw(execute: Callable[[int, str], None], pid: int, directory: Path) -> None:
    """Cancel the start of the recording, or end a recording that has just begun."""
    with suppress(NotAttachable, FileNotFoundError):
        if _is_alive(pid):
            _execute(execute, pid, _NOTHING)
        if _has_recording(directory):
            _end(execute, pid, directory)


def _remote_exec() -> Callable[[int, str], None]:
    execute: Callable[[int, str], None] | None = getattr(sys, "remote_exec", None)
    if execute is None:
        version = ".".join(map(str, sys.version_info[:2]))
        raise NotAttachable(
            f"recording a running process needs CPython 3.14 or later (sys.remote_exec), and this is {version}",
            "start the program with `unsnarl trace` instead",
        )
    return execute


def _check_process(pid: int) -> None:
    if not _is_alive(pid):
        raise NotAttachable(f"there is no process {pid}", "`ps -ef` shows them")
    if pid == os.getpid():
        raise NotAttachable(f"process {pid} is this command itself", "name another process")


def _execute(execute: Callable[[int, str], None], pid: int, path: str) -> None:
    try:
        execute(pid, path)
    except PermissionError:
        raise NotAttachable(
            f"the kernel does not let this user write into process {pid} ({_ptrace_rule()})",
            "run as its owner, or as root where /proc/sys/kernel/yama/ptrace_scope is not 0",
        ) from None
    except (OSError, RuntimeError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise NotAttachable(
            f"process {pid} cannot be reached: {why}",
            f"it must run CPython {sys.version_info[0]}.{sys.version_info[1]}, as this command does, "
            "with remote debugging enabled",
        ) from None


def _is_alive(pid: int) -> bool:
    """Tell whether the process exists and is no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except (OSError, IndexError):
        return False


def _ptrace_rule() -> str:
    try:
        return f"ptrace_scope is {Path('/proc/sys/kernel/yama/ptrace_scope').read_text().strip()}"
    except OSError:
        return "ptrace is not allowed"


def _has_recording(directory: Path) -> bool:
    return any(name.endswith(recording.SUFFIX) for name in os.listdir(directory))


def _wait(is_done: Callable[[], bool], pid: int) -> bool:
    """Wait for a condition that the process fulfils; False at the timeout, or if the process ends first."""
    ends = time.monotonic() + TIMEOUT_S
    while not is_done():
        if time.monotonic() > ends or not _is_alive(pid):
            return is_done()
        time.sleep(PAUSE_S)
    return True


def _sleep(seconds: float, pid: int) -> None:
    """Sleep for some seconds, or until the process ends."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and _is_alive(pid):
        time.sleep(min(PAUSE_S, max(0.0, ends - time.monotonic())))
