"""Records a process that runs already, for some seconds, by ``sys.remote_exec`` (PEP 768).

The process runs two small scripts of ours at safe points of its main thread: one that
starts a recording, one that ends it. It must be the same minor version of CPython as
ours, 3.14 at least, and the kernel must let us write into it (ptrace rules).

Raises ``NotAttachable`` with the reason and a hint; the process is not changed then.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from unsnarl.errors import UnsnarlError
from unsnarl.trace.recording import SUFFIX

PATIENCE_S = 10.0
"""How long the main thread of the process may take to come to a safe point."""

PAUSE_S = 0.02

_BEGIN = """\
import sys
sys.path.insert(0, {package!r})
try:
    from unsnarl.run_settings import RunSettings
    from unsnarl.trace import recording
    recording.attach(RunSettings(trace={directory!r}, trace_chunks={chunks}, children=False))
except BaseException as error:
    with open({failure!r}, "w") as stream:
        stream.write(f"{{type(error).__name__}}: {{error}}")
finally:
    sys.path.remove({package!r})
"""

_END = """\
from unsnarl.trace import recording
recording.detach()
open({done!r}, "w").close()
"""


class NotAttachable(UnsnarlError):  # noqa: N818 -- said of the process
    """Say why a process cannot be recorded.

    Attributes:
        reason: what is the matter.
        hint: what to do about it.
    """

    reason: str
    hint: str

    def __init__(self, reason: str, hint: str) -> None:
        """Keep the two apart."""
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint


def record(pid: int, directory: Path, seconds: float, chunks: int) -> None:
    """Record a process for some seconds into a directory.

    Raises:
        NotAttachable: it cannot be.
    """
    execute = _remote_exec()
    _check_process(pid)
    failure, done = directory / "failure", directory / "done"
    begin = _BEGIN.format(
        package=str(Path(__file__).parents[2]), directory=str(directory), chunks=chunks, failure=str(failure)
    )
    _execute(execute, pid, directory / "begin.py", begin)
    if not _wait(lambda: failure.exists() or _has_recording(directory), pid):
        raise NotAttachable(
            f"process {pid} did not start to record within {PATIENCE_S:g} s",
            "its main thread is in a call that does not return to Python; try again when it does something",
        )
    if failure.exists():
        raise NotAttachable(f"process {pid} cannot be recorded: {failure.read_text()}", "see `unsnarl gil probe`")
    _sleep(seconds, pid)
    _execute(execute, pid, directory / "end.py", _END.format(done=str(done)))
    _wait(done.exists, pid)


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
    if not os.path.isdir(f"/proc/{pid}"):
        raise NotAttachable(f"there is no process {pid}", "`ps -ef` shows them")
    if pid == os.getpid():
        raise NotAttachable(f"process {pid} is this command itself", "name another process")


def _execute(execute: Callable[[int, str], None], pid: int, path: Path, script: str) -> None:
    path.write_text(script)
    try:
        execute(pid, str(path))
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


def _ptrace_rule() -> str:
    try:
        return f"ptrace_scope is {Path('/proc/sys/kernel/yama/ptrace_scope').read_text().strip()}"
    except OSError:
        return "ptrace is not allowed"


def _has_recording(directory: Path) -> bool:
    return any(name.endswith(SUFFIX) for name in os.listdir(directory))


def _wait(has_come: Callable[[], bool], pid: int) -> bool:
    """Wait for something that the process does; False if it does not come, or the process ends."""
    ends = time.monotonic() + PATIENCE_S
    while not has_come():
        if time.monotonic() > ends or not os.path.isdir(f"/proc/{pid}"):
            return has_come()
        time.sleep(PAUSE_S)
    return True


def _sleep(seconds: float, pid: int) -> None:
    """Wait for some seconds, or for the end of the process."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and os.path.isdir(f"/proc/{pid}"):
        time.sleep(min(PAUSE_S, max(0.0, ends - time.monotonic())))
