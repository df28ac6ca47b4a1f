"""Records a process that runs already, for some seconds, by ``sys.remote_exec`` (PEP 768).

The process runs two small scripts of ours at safe points of its main thread: one that
starts a recording, one that ends it. It must be the same minor version of CPython as
ours, 3.14 at least, and the kernel must let us write into it (ptrace rules).

Raises ``NotAttachable`` with the reason and a hint; the process is not changed then.

Invariants: a script that the process has yet to run exists for as long as it may do so,
else it would complain on its stderr; and a recording is ended, whatever ends us, short of SIGKILL.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from unsnarl.errors import HintedError
from unsnarl.trace.running import handover
from unsnarl.trace.traced import recording

TIMEOUT_S = 10.0
"""How long the main thread of the process may take to come to a safe point."""

PAUSE_S = 0.02

SCRIPT, FAILURE = "begin.py", "failure"
"""Files in the directory: what begins the recording, and why it could not."""

FAILURE_BYTES = 4096
"""More of it is not read."""

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
        pass  # whoever wanted to know is gone, and its directory
finally:
    sys.path.remove({package!r})
"""

_END = str(Path(recording.__file__).with_name("detachment.py"))
"""Stays where it is, however late the process comes to it."""

_NOTHING = os.devnull
"""Takes the place of a script that the process has yet to run: there is room for one."""


class NotAttachable(HintedError):  # noqa: N818 -- said of the process
    """Say why a process cannot be recorded; the process is unchanged."""


def record(pid: int, directory: Path, seconds: float, chunks: int, owner: handover.Owner | None = None) -> None:
    """Record a process for some seconds, or until KeyboardInterrupt, into an empty directory of ours.

    The directory becomes the owner's, if one is given.

    Raises:
        OSError: nothing can be written there.
        NotAttachable: it cannot be.
        KeyboardInterrupt: before the recording began; none will begin then.
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
        _sleep(seconds, pid)
    except KeyboardInterrupt:
        pass  # that was enough
    finally:
        _end(execute, pid, directory)


def _write_script(directory: Path, chunks: int) -> None:
    """Write what begins the recording: readable whatever our umask is, and while the directory is still ours."""
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
            f"the user of process {pid} cannot come to {str(closed)!r}, as the process must to be recorded",
            "install unsnarl where every user can read it, and let TMPDIR name a directory of all",
        ) from None
    except OSError as error:
        raise NotAttachable(
            f"the user of process {pid} cannot be given a directory: {error.strerror}", "be root, and not in a sandbox"
        ) from None


def _begin(execute: Callable[[int, str], None], pid: int, directory: Path) -> None:
    failure = directory / FAILURE
    _execute(execute, pid, str(directory / SCRIPT))
    if not _wait(lambda: os.path.lexists(failure) or _has_recording(directory), pid):
        if not _is_alive(pid):
            raise NotAttachable(f"process {pid} ended before it began to record", "attach to it earlier")
        raise NotAttachable(
            f"process {pid} did not start to record within {TIMEOUT_S:g} s",
            "its main thread is in a call that does not return to Python; try again when it does something",
        )
    if os.path.lexists(failure):
        raise NotAttachable(f"process {pid} cannot be recorded: {_read_failure(failure)}", "see `unsnarl gil probe`")


def _read_failure(path: Path) -> str:
    """Return what the process wrote; its user may have put anything there, a link or a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(handle, FAILURE_BYTES).decode(errors="replace")
        finally:
            os.close(handle)
    except OSError:
        return "it does not say why"


def _end(execute: Callable[[int, str], None], pid: int, directory: Path) -> None:
    """End the recording; where the process cannot do so now it will as soon as it can."""
    with suppress(NotAttachable):  # it has ended, and its recording with it
        _execute(execute, pid, _END)
        _wait((directory / recording.DETACHED).exists, pid)


def _withdraw(execute: Callable[[int, str], None], pid: int, directory: Path) -> None:
    """Have no recording begin, or end it if it has begun just now."""
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
            f"a running process can be recorded from CPython 3.14 on (sys.remote_exec), and this is {version}",
            "start it with `unsnarl trace` instead",
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
            "be its owner, and root where /proc/sys/kernel/yama/ptrace_scope is not 0",
        ) from None
    except (OSError, RuntimeError, ValueError) as error:
        why = str(error) or type(error).__name__
        raise NotAttachable(
            f"process {pid} cannot be reached: {why}",
            f"it must be CPython {sys.version_info[0]}.{sys.version_info[1]} like this one, "
            "and its remote debugging not switched off",
        ) from None


def _is_alive(pid: int) -> bool:
    """Tell whether there is such a process, and it is no zombie."""
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


def _wait(has_come: Callable[[], bool], pid: int) -> bool:
    """Wait for something that the process does; False if it does not come, or the process ends."""
    ends = time.monotonic() + TIMEOUT_S
    while not has_come():
        if time.monotonic() > ends or not _is_alive(pid):
            return has_come()
        time.sleep(PAUSE_S)
    return True


def _sleep(seconds: float, pid: int) -> None:
    """Wait for some seconds, or for the end of the process."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and _is_alive(pid):
        time.sleep(min(PAUSE_S, max(0.0, ends - time.monotonic())))
