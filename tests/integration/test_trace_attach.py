"""``unsnarl trace --attach``: a running process is recorded for some seconds, and continues as before."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import UNSNARL, clean_environment
from tests.integration.trace_programs import needs_hooks
from tests.integration.waiting import until
from unsnarl.trace.running import attach

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.conftest import Programs

RUNNING = """\
import sys, threading, time
is_over = threading.Event()
def work():
    while not is_over.is_set():
        time.sleep(0.001)
thread = threading.Thread(target=work, name="runs-already")
thread.start()
print("ready", flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), is_over.set())).start()
while not is_over.is_set():
    time.sleep(0.005)
thread.join()
print("done")
"""


@contextlib.contextmanager
def started(programs: Programs, text: str) -> Generator[subprocess.Popen[bytes]]:
    """Start the program to attach to, and wait until it is ready."""
    programs.write("app.py", text)
    with subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=programs.directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield process


needs_remote_exec = pytest.mark.skipif(sys.version_info < (3, 14), reason="sys.remote_exec came with CPython 3.14")


@needs_remote_exec
def test_a_running_process(programs: Programs) -> None:
    needs_hooks()
    with started(programs, RUNNING) as process:
        outcome = programs.unsnarl("trace", "--data", "data.json", "--seconds", "2", "--attach", str(process.pid))
        assert process.communicate(b"", timeout=60) == (b"done\n", b"")
        assert process.returncode == 0
    if "does not let this user" in outcome.complaint:
        pytest.skip(f"ptrace is not allowed here: {outcome.complaint}")
    assert outcome.status == 0, outcome.complaint
    [recorded] = json.loads((programs.directory / "data.json").read_text())["processes"]
    assert recorded["pid"] == process.pid
    assert recorded["is_complete"]
    assert "runs-already" in {thread["name"] for thread in recorded["threads"]}
    assert (programs.directory / "trace.html").exists()


BLOCKED = """\
import ctypes
read, place = ctypes.CDLL(None).read, ctypes.create_string_buffer(1)
print("ready", flush=True)
read(0, place, 1)
print("done")
"""


def is_asleep(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


@needs_remote_exec
def test_a_process_that_cannot_begin_is_left_alone(programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script that the process has not run is withdrawn: the process neither reports an error nor records later."""
    monkeypatch.setattr(attach, "TIMEOUT_S", 0.3)
    directory = programs.directory / "recording"
    directory.mkdir()
    with started(programs, BLOCKED) as process:
        until(lambda: is_asleep(process.pid))
        with pytest.raises(attach.NotAttachable, match=r"did not start|does not let this user"):
            attach.record(process.pid, directory, 60, 64)
        shutil.rmtree(directory)
        assert process.communicate(b"x", timeout=60) == (b"done\n", b"")
        assert process.returncode == 0


@needs_remote_exec
def test_a_signal_ends_the_recording_and_not_the_process(programs: Programs) -> None:
    needs_hooks()
    with started(programs, RUNNING) as process:
        words = [UNSNARL, "trace", "--data", "data.json", "--seconds", "600", "--attach", str(process.pid)]
        with subprocess.Popen(
            words, cwd=programs.directory, stderr=subprocess.PIPE, env=clean_environment(), text=True
        ) as tracer:
            until(lambda: any(programs.directory.glob(".unsnarl-trace-*/*.trace")) or tracer.poll() is not None)
            tracer.terminate()
            _, complaint = tracer.communicate(timeout=120)
        assert process.communicate(b"", timeout=60) == (b"done\n", b"")
        assert process.returncode == 0
    if "does not let this user" in complaint:
        pytest.skip(f"ptrace is not allowed here: {complaint}")
    assert tracer.returncode == 0, complaint
    [recorded] = json.loads((programs.directory / "data.json").read_text())["processes"]
    assert recorded["is_complete"]
