"""A traced program keeps its output, its status, its signals and its modules."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import UNSNARL, clean_environment
from tests.integration.trace_programs import needs_hooks, trace, trace_words

if TYPE_CHECKING:
    from tests.conftest import Programs


@pytest.fixture(autouse=True)
def hooked() -> None:
    needs_hooks()


TERMINATED = """\
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(42))
print("ready", flush=True)
while True:
    time.sleep(0.05)
"""

KILLED = """\
import os, signal, threading, time
thread = threading.Thread(target=time.sleep, args=(0.2,), name="sleeper")
thread.start()
thread.join()
os.kill(os.getpid(), signal.SIGKILL)
"""

ORPHANED = """\
import sys
print("ready", flush=True)
sys.stdin.read()
open("finished", "w").close()
"""


@pytest.mark.parametrize(
    "text",
    [
        "print('out'); import sys; print('err', file=sys.stderr)",
        "import sys; print(sys.argv, __name__, __file__ if '__file__' in globals() else None); sys.exit(7)",
        "1/0",
        "import threading; threading.Thread(target=lambda: 1/0).start()",
        "import os; os.write(1, b'x'); os._exit(3)",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import sys; sys.stdout.close(); sys.stderr.close()",
        "import sys; print(sys.stdin.read())",
        "import no_such_module",
        "def f(: pass",
        "import _thread\ntry: _thread.start_new_thread(1, 2)\nexcept TypeError as error: print(error)",
        "import sys; print(sys.getprofile(), sys.gettrace())",
    ],
)
def test_status_and_output_are_the_programs(programs: Programs, text: str) -> None:
    programs.write("app.py", text)
    plain = programs.execute([sys.executable, "app.py"], stdin=b"input")
    traced = programs.execute([UNSNARL, "trace", "app.py"], stdin=b"input")
    assert (traced.status, traced.stdout) == (plain.status, plain.stdout)
    assert traced.stderr.startswith(plain.stderr)
    assert "Traceback (most recent call last)" not in traced.complaint[len(plain.complaint) :]


def test_modules_are_those_of_a_plain_start(programs: Programs) -> None:
    ours = "('unsnarl', '_unsnarl_boot')"
    names = f"sorted(name for name in sys.modules if name.partition('.')[0] not in {ours})"
    programs.write("app.py", f"import sys; print(*{names})")
    plain = set(programs.python("app.py").stdout.decode().split())
    traced = set(trace_words(programs, "app.py").outcome.stdout.decode().split())
    # Built-in modules, which no file of the program can replace.
    assert traced - plain <= {"atexit", "_posixsubprocess"}


def test_a_module_of_the_program_is_not_hidden(programs: Programs) -> None:
    for name in ("queue", "signal", "json", "threading", "subprocess"):
        programs.write(f"{name}.py", f"print('own {name}')")
    traced = trace(programs, "import queue, signal, json\n")
    assert traced.outcome.stdout.decode().splitlines() == ["own queue", "own signal", "own json"]


def test_a_signal_to_the_command_reaches_the_program(programs: Programs) -> None:
    programs.write("app.py", TERMINATED)
    with subprocess.Popen(
        [UNSNARL, "trace", "app.py"],
        cwd=programs.directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.terminate()
        assert process.wait(timeout=60) == 42
    assert (programs.directory / "trace.html").exists()


def test_a_killed_program_leaves_a_readable_trace(programs: Programs) -> None:
    programs.write("app.py", KILLED)
    traced = trace_words(programs, "app.py")
    assert traced.outcome.status == -signal.SIGKILL
    [process] = traced.processes
    assert not process["is_complete"]
    assert traced.thread("sleeper")["asleep_ns"] > 0.15e9


def test_when_the_command_is_killed_the_program_and_its_recording_live_on(programs: Programs) -> None:
    programs.write("app.py", ORPHANED)
    with subprocess.Popen(
        [UNSNARL, "trace", "app.py"],
        cwd=programs.directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=clean_environment(),
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        process.kill()
        process.stdin.close()
        process.wait(timeout=60)
        process.stdout.read()  # until the program has ended as well
    ends = time.monotonic() + 30
    while not (programs.directory / "finished").exists() and time.monotonic() < ends:
        time.sleep(0.02)
    assert (programs.directory / "finished").exists()
    [left] = [entry for entry in programs.directory.iterdir() if entry.name.startswith(".unsnarl-trace-")]
    read = programs.unsnarl("trace", "--read", left)
    assert read.status == 0, read.complaint
    assert (programs.directory / "trace.html").exists()


def test_switched_off(programs: Programs) -> None:
    outcome = programs.unsnarl("trace", "-c", "print('plain')", env={"UNSNARL": "off"})
    assert (outcome.status, outcome.stdout, outcome.stderr) == (0, b"plain\n", b"")
    assert not (programs.directory / "trace.html").exists()


def test_nothing_is_left_beside_the_reports(programs: Programs) -> None:
    trace(programs, "print(1)")
    names = {entry.name for entry in programs.directory.iterdir()}
    assert names - {"__pycache__"} == {"app.py", "data.json", "trace.html", "trace.json"}
