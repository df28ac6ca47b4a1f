"""The client represents its worker: signals that are meant for one of them, stops that have ended, orphaned jobs.

When the word of a stop arrives is up to the test where it plays the server
(``Played``); the worker is then a process of the test that can be stopped.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.test_warm_failures import COUNTER, Played, ready, started
from tests.integration.test_warm_terminal import PROMPT, SLEEPER, Terminal, prepare
from tests.integration.waiting import LISTEN, LISTENS, WATCHDOG_S, until, until_gone
from unsnarl.warm import wire

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

WHO = "'warm' if '_unsnarl_warm' in sys.modules else 'plain'"


def state(pid: int) -> str:
    """Return the state of a process, one letter."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def stop_over(conn: socket.socket) -> None:
    """Report a stop to a client, late, as a slow server does."""
    conn.send(wire.REPLY.pack(wire.STOPPED, int(signal.SIGTSTP)))


def end_with(conn: socket.socket, status: int) -> None:
    """Report to a client that its worker has ended."""
    conn.send(wire.REPLY.pack(wire.ENDED, status << 8))


@pytest.fixture
def terminal(rig: "Rig") -> Iterator[Terminal]:
    """A terminal, hung up at the end."""
    terminal = Terminal(rig)
    yield terminal
    terminal.close()


@pytest.fixture
def worker() -> Iterator["subprocess.Popen[bytes]"]:
    """A process in the role of a worker; in a group of its own, since the kernel stops no orphaned one."""
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, process_group=0) as process:
        yield process
        process.kill()


# -- a stop that has ended -------------------------------------------------------


@pytest.fixture
def detached(
    rig: "Rig", worker: "subprocess.Popen[bytes]"
) -> Iterator[tuple["subprocess.Popen[bytes]", socket.socket]]:
    """A client without a terminal, and the server's end of its connection."""
    script = rig.script("counter", COUNTER)
    rig.start(script, start_new_session=True)
    played = Played(rig)
    process = started(rig, script, start_new_session=True)
    conn = played.take()
    ready(conn, worker.pid)
    assert conn.recv(1) == wire.GO
    yield process, conn
    conn.close()
    played.close()


def pause(process: "subprocess.Popen[bytes]", worker: "subprocess.Popen[bytes]") -> None:
    """Stop a client by a signal that it passes on."""
    process.send_signal(signal.SIGTSTP)
    until(lambda: state(worker.pid) == "T")


def resume(process: "subprocess.Popen[bytes]", worker: "subprocess.Popen[bytes]") -> None:
    """Continue it."""
    process.send_signal(signal.SIGCONT)
    until(lambda: state(worker.pid) != "T")


def test_the_word_of_a_stop_that_is_over_stops_nobody(
    worker: "subprocess.Popen[bytes]", detached: tuple["subprocess.Popen[bytes]", socket.socket]
) -> None:
    process, conn = detached
    pause(process, worker)
    resume(process, worker)
    stop_over(conn)
    end_with(conn, 5)
    assert process.wait(WATCHDOG_S) == 5


def test_of_two_stops_the_one_that_lasts_counts(
    worker: "subprocess.Popen[bytes]", detached: tuple["subprocess.Popen[bytes]", socket.socket]
) -> None:
    process, conn = detached
    pause(process, worker)
    resume(process, worker)
    pause(process, worker)
    stop_over(conn)
    stop_over(conn)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    resume(process, worker)
    end_with(conn, 5)
    assert process.wait(WATCHDOG_S) == 5


def test_a_continued_client_continues_its_worker_on_a_terminal(
    rig: "Rig", terminal: Terminal, worker: "subprocess.Popen[bytes]"
) -> None:
    command = prepare(rig, terminal, COUNTER)
    with contextlib.closing(Played(rig)) as played:
        terminal.type(f"sh -c 'echo pid $$; exec {command}'; echo status=$?\n")
        client = int(terminal.wait_for(rb"\npid \d+\r\n").split()[-1])
        conn = played.take()
        ready(conn, worker.pid)
        assert conn.recv(1) == wire.GO
        os.kill(client, signal.SIGTSTP)
        until(lambda: state(worker.pid) == "T")
        os.kill(client, signal.SIGCONT)
        stop_over(conn)
        until(lambda: state(worker.pid) != "T")
        end_with(conn, 5)
        assert b"status=5" in terminal.wait_for(rb"status=\d+")
        conn.close()


def test_a_group_stopped_and_continued_runs_on(rig: "Rig", terminal: Terminal) -> None:
    terminal.type(prepare(rig, terminal, SLEEPER) + "\n")
    job = int(terminal.wait_for(rb"up warm in \d+\r\n").split()[-1])
    os.killpg(job, signal.SIGSTOP)
    terminal.wait_for(rb"(?s)Stopped.*" + PROMPT)
    os.killpg(job, signal.SIGCONT)
    terminal.wait_for(b"continued")
    os.kill(job, signal.SIGTERM)
    until_gone(job)


def test_a_client_continued_before_its_worker_runs_on(
    rig: "Rig", terminal: Terminal, worker: "subprocess.Popen[bytes]"
) -> None:
    """As the kernel continues a group: one member after the other, and the report of the stop may arrive between."""
    command = prepare(rig, terminal, COUNTER)
    with contextlib.closing(Played(rig)) as played:
        terminal.type(f"sh -c 'echo pid $$; exec {command}'\n")
        client = int(terminal.wait_for(rb"\npid \d+\r\n").split()[-1])
        conn = played.take()
        ready(conn, worker.pid)
        assert conn.recv(1) == wire.GO
        for pid in (client, worker.pid):
            os.kill(pid, signal.SIGSTOP)
            until(lambda pid=pid: state(pid) == "T")  # type: ignore[misc]
        stop_over(conn)
        os.kill(client, signal.SIGCONT)
        until(lambda: state(client) != "T")
        os.kill(worker.pid, signal.SIGCONT)
        end_with(conn, 5)
        until_gone(client)
        conn.close()


# -- signals of the kernel to one process ---------------------------------------


def test_an_alarm_set_before_rings_in_the_command(rig: "Rig", terminal: Terminal) -> None:
    text = f"import sys\n{LISTENS}signal.signal(signal.SIGALRM, lambda *args: sys.exit(7))\nwhile True: {LISTEN}"
    command = prepare(rig, terminal, text)
    setter = "import os, signal, sys; signal.alarm(2); os.execv(sys.argv[1], sys.argv[1:])"
    terminal.type(f"{sys.executable} -c '{setter}' {command}; echo status=$?\n")
    # On a slower machine the command ends by the signal, as in a plain run.
    seen = terminal.wait_for(rb"status=\d+\r\n")
    assert b"status=7\r\n" in seen or b"status=142\r\n" in seen


def test_a_descriptor_signals_its_owner(rig: "Rig", terminal: Terminal) -> None:
    text = (
        f"import sys\n{LISTENS}signal.signal(signal.SIGIO, lambda *args: sys.exit(8))\n"
        f"print('up', flush=True)\nwhile True: {LISTEN}"
    )
    command = prepare(rig, terminal, text)
    pipe = rig.directory / "work" / "pipe"
    os.mkfifo(pipe)
    owner = rig.script(
        "owner",
        "import fcntl, os, sys\n"
        "fd = os.open('pipe', os.O_RDWR)\n"
        "fcntl.fcntl(fd, fcntl.F_SETOWN, os.getpid())\n"
        "fcntl.fcntl(fd, fcntl.F_SETFL, os.O_RDWR | os.O_ASYNC)\n"
        "os.set_inheritable(fd, True)\n"
        "os.execv(sys.argv[1], sys.argv[1:])\n",
    )
    terminal.type(f"{owner} {command}; echo status=$?\n")
    terminal.wait_for(b"\nup")
    pipe.write_bytes(b"x")
    assert b"status=8" in terminal.wait_for(rb"status=\d+")


# -- jobs that no shell could continue ----------------------------------------------

READER = f"import sys\nprint('up', {WHO}, flush=True)\nprint('got', sys.stdin.readline(), flush=True)\n"
ORPHANS = ["exec {}", "exec sh -c '{}; true'", "exec sh -c 'sh -c \"{}; true\"; true'"]
"""Two ways to leave no shell with job control above a command: as the session's leader, or in the leader's group."""


@pytest.mark.parametrize("line", ORPHANS)
def test_an_orphaned_job_is_plain_and_not_stopped(rig: "Rig", terminal: Terminal, line: str) -> None:
    command = prepare(rig, terminal, READER).replace(" --require", "")
    terminal.type(line.format(command) + "\n")
    assert b"up plain" in terminal.wait_for(rb"\nup \w+")
    terminal.type("\x1a")
    terminal.type("line\n")
    terminal.wait_for(b"got line")


@pytest.mark.parametrize(("verb", "status"), [("run --require", b"69"), ("start", b"1")])
def test_who_insists_in_an_orphaned_job_is_told(rig: "Rig", terminal: Terminal, verb: str, status: bytes) -> None:
    command = prepare(rig, terminal, READER).replace("run --require", verb)
    terminal.type(f"exec sh -c '{command}; echo status=$?; read line'\n")
    seen = terminal.wait_for(rb"status=\d+\r\n")
    assert b"never continued" in seen
    assert b"status=" + status + b"\r\n" in seen


def test_a_hang_up_reaches_a_command_that_leads_its_session(rig: "Rig", terminal: Terminal) -> None:
    hung = rig.directory / "hung"
    text = (
        f"import sys\n{LISTENS}"
        f"def hang_up(*args): open({str(hung)!r}, 'w').close(); sys.exit()\n"
        f"signal.signal(signal.SIGHUP, hang_up)\nprint('up', {WHO}, flush=True)\nwhile True: {LISTEN}"
    )
    command = prepare(rig, terminal, text).replace(" --require", "")
    terminal.type(f"exec {command}\n")
    terminal.wait_for(rb"\nup \w+")
    os.close(terminal.fd)
    terminal.fd = -1
    until(hung.exists)


def test_jobs_beneath_a_shell_with_job_control_are_warm(rig: "Rig", terminal: Terminal) -> None:
    command = prepare(rig, terminal, f"import sys\nprint('up', {WHO})\n")
    assert b"up warm" in terminal.run(f"sh -c '{command}; true'")
    assert b"up warm" in terminal.run(f"bash -c \"sh -c '{command}; true'; true\"")
    assert b"up warm" in terminal.run(f"timeout {WATCHDOG_S:.0f} {command}")
    assert b"up warm" in terminal.run(f"{command} | cat")


def test_a_job_without_the_terminal_is_warm(rig: "Rig", terminal: Terminal) -> None:
    command = prepare(rig, terminal, f"import sys\nprint('up', {WHO})\n")
    start = command.replace("run --require", "start")
    assert UNSNARL in start
    assert b"rc=0" in terminal.run(f"setsid --wait {start}; echo rc=$?"), rig.log()
    assert b"up warm" in terminal.run(f"setsid --wait {command}")
    assert b"up warm" in terminal.run(f"setsid --wait sh -c '{command}; true'")
