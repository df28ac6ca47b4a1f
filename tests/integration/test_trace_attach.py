"""``unsnarl trace --attach``: a process that runs already is recorded for a while, and goes on as before."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import clean_environment
from tests.integration.trace_programs import needs_hooks

if TYPE_CHECKING:
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


@pytest.mark.skipif(sys.version_info < (3, 14), reason="sys.remote_exec came with CPython 3.14")
def test_a_running_process(programs: Programs) -> None:
    needs_hooks()
    programs.write("app.py", RUNNING)
    with subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=programs.directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n"
        outcome = programs.unsnarl("trace", "--data", "data.json", "--seconds", "0.5", "--attach", str(process.pid))
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(timeout=60) == 0
    assert rest == b"done\n"
    if "does not let this user" in outcome.complaint:
        pytest.skip(f"ptrace is not allowed here: {outcome.complaint}")
    assert outcome.status == 0, outcome.complaint
    [recorded] = json.loads((programs.directory / "data.json").read_text())["processes"]
    assert recorded["pid"] == process.pid
    assert recorded["is_complete"]
    assert "runs-already" in {thread["name"] for thread in recorded["threads"]}
    assert (programs.directory / "trace.html").exists()
