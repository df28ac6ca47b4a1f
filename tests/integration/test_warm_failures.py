"""Failures: a server that dies at each step of a request, a clock set back, a command that outlives its server.

A server that dies at a given step is played: the test listens in its place, speaks the
protocol up to that step, and hangs up. The command counts its runs in a file, since the
rule is about that: plainly if no worker had the word to go, and never twice.
"""

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.waiting import LISTEN, LISTENS, WATCHDOG_S, until, until_gone
from unsnarl.warm import wire

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

COUNTER = (
    "import os, sys\n"
    "fd = os.open('runs', os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
    "os.write(fd, b'warm\\n' if '_unsnarl_warm' in sys.modules else b'plain\\n')\n"
    "sys.exit(5)\n"
)
UNKNOWN = b"error: the worker and its server are gone; how the command ended is unknown"


def runs(rig: "Rig") -> list[str]:
    """Return for each run whether it was warm."""
    path = rig.directory / "work" / "runs"
    return path.read_text().split() if path.exists() else []


def is_listened_at(path: Path) -> bool:
    # By the descriptor of the directory: an address holds 107 bytes only.
    house = os.open(path.parent, os.O_PATH)
    try:
        with socket.socket(socket.AF_UNIX) as client:
            return client.connect_ex(f"/proc/self/fd/{house}/{path.name}") == 0
    finally:
        os.close(house)


def started(rig: "Rig", *words: str, **options: object) -> "subprocess.Popen[bytes]":
    """Start a command through the client, with its usual fallback."""
    settings: dict[str, object] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    settings |= {"env": rig.env, "cwd": rig.directory / "work"} | options
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [UNSNARL, "warm", "run", "--", *words],
        **settings,  # type: ignore[call-overload]
    )
    rig.processes.append(process)
    return process


class Played:
    """A server that is the test: it listens where the real one did."""

    def __init__(self, rig: "Rig", script: str | None = None) -> None:
        if script is not None:  # or else one serves already, in a session that is not the tests'
            rig.start(script)
        (self.path,) = rig.house.glob("*.sock")
        (pid,) = rig.server_pids()
        rig.verb("stop")
        until_gone(pid)
        # The next start would find the lock taken: only the client's behaviour counts here.
        self.lock = os.open(self.path.with_suffix(".lock"), os.O_RDWR)
        import fcntl

        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.listener = socket.socket(socket.AF_UNIX)
        self.house = os.open(rig.house, os.O_PATH)
        self.listener.bind(f"/proc/self/fd/{self.house}/{self.path.name}")
        self.listener.listen(8)
        self.listener.settimeout(WATCHDOG_S)

    def accept(self) -> socket.socket:
        """Wait for a client."""
        conn, _ = self.listener.accept()
        conn.settimeout(WATCHDOG_S)
        return conn

    def take(self) -> socket.socket:
        """Wait for a client and read its whole request; its descriptors are closed."""
        conn = self.accept()
        data, fds, _, _ = socket.recv_fds(conn, wire.HEADER.size, wire.MAX_FDS)
        for fd in fds:
            os.close(fd)
        _, missing = wire.decode_header(data)
        while missing:
            missing -= len(conn.recv(missing))
        return conn

    def has_call(self) -> bool:
        """Return whether a client waits."""
        self.listener.settimeout(0)
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def leave(self) -> None:
        """Die as a killed server does: the socket's name stays, without a listener."""
        self.listener.close()

    def close(self) -> None:
        """Close everything."""
        self.leave()
        os.close(self.house)
        os.close(self.lock)


@pytest.fixture
def counter(rig: "Rig") -> str:
    """A command that counts its runs."""
    return rig.script("counter", COUNTER)


@pytest.fixture
def played(rig: "Rig", counter: str) -> Iterator[Played]:
    """A server played in place of the counter's."""
    played = Played(rig, counter)
    yield played
    played.close()


def ready(conn: socket.socket, worker: int | None = None) -> None:
    """Report a worker as ready: this process, or another one."""
    conn.send(wire.REPLY.pack(wire.READY, worker or os.getpid()))


def test_dead_before_the_request_is_read(rig: "Rig", counter: str, played: Played) -> None:
    process = started(rig, counter)
    conn = played.accept()
    played.leave()
    conn.close()
    assert process.wait(WATCHDOG_S) == 5
    assert runs(rig) == ["plain"]


def test_dead_with_the_request_in_hand(rig: "Rig", counter: str, played: Played) -> None:
    process = started(rig, counter)
    conn = played.take()
    played.leave()
    conn.close()
    assert process.wait(WATCHDOG_S) == 5
    assert runs(rig) == ["plain"]


def test_dead_in_the_middle_of_its_answer(rig: "Rig", counter: str, played: Played) -> None:
    process = started(rig, counter)
    conn = played.take()
    conn.send(wire.REPLY.pack(wire.READY, os.getpid())[:5])
    played.leave()
    conn.close()
    assert process.wait(WATCHDOG_S) == 5
    assert runs(rig) == ["plain"]


def test_dead_between_ready_and_go(rig: "Rig", counter: str, played: Played) -> None:
    process = started(rig, counter)
    conn = played.take()
    # The client must not send GO before the other side has ended.
    process.send_signal(signal.SIGSTOP)
    os.waitpid(process.pid, os.WUNTRACED)
    ready(conn)
    played.leave()
    conn.close()
    process.send_signal(signal.SIGCONT)
    assert process.wait(WATCHDOG_S) == 5
    assert runs(rig) == ["plain"]


def test_ready_with_a_process_that_is_gone(rig: "Rig", counter: str, played: Played) -> None:
    process = started(rig, counter)
    conn = played.take()
    gone = subprocess.Popen(["true"])
    gone.wait(WATCHDOG_S)
    conn.send(wire.REPLY.pack(wire.READY, gone.pid))
    assert process.wait(WATCHDOG_S) == 5
    assert runs(rig) == ["plain"]
    assert conn.recv(1) == b"", "the word to go was given to a dead worker"
    conn.close()


@pytest.mark.parametrize("answer", [b"\0" * 8, b"\xff" * 8, wire.REPLY.pack(wire.ENDED, 0)])
def test_an_answer_out_of_turn(rig: "Rig", counter: str, played: Played, answer: bytes) -> None:
    process = started(rig, counter)
    conn = played.take()
    conn.send(answer)
    assert process.wait(WATCHDOG_S) == 5
    assert runs(rig) == ["plain"]
    conn.close()


def test_a_server_that_does_not_answer_is_not_asked_by_each_call(rig: "Rig", counter: str, played: Played) -> None:
    process = started(rig, counter)
    conn = played.take()
    assert process.wait(WATCHDOG_S) == 5
    conn.close()
    # Nothing takes this call: without the memory it would wait as long as the first one.
    assert started(rig, counter).wait(WATCHDOG_S) == 5
    assert runs(rig) == ["plain"] * 2
    assert b"did not answer in time" in rig.verb("why", counter).stdout
    assert not played.has_call()


def last_word(rig: "Rig", process: "subprocess.Popen[bytes]") -> bytes:
    """Wait for the end of a command whose standard error is a file, and return the file's content."""
    process.communicate(timeout=WATCHDOG_S)
    return (rig.directory / "said").read_bytes()


@pytest.mark.parametrize("is_piped", [False, True], ids=["file", "pipe"])
def test_dead_after_go_is_reported_and_not_run_again(rig: "Rig", counter: str, played: Played, is_piped: bool) -> None:
    with (rig.directory / "said").open("wb") as file:
        process = started(rig, counter, stderr=subprocess.PIPE if is_piped else file)
    conn = played.take()
    ready(conn)
    assert conn.recv(1) == wire.GO
    played.leave()
    conn.close()
    said = process.communicate(timeout=WATCHDOG_S)[1] if is_piped else last_word(rig, process)
    assert (process.returncode, said.startswith(UNKNOWN)) == (255, True)
    assert runs(rig) == []


@pytest.mark.parametrize(("said", "status"), [(5 << 8, 5), (0, 0), (int(signal.SIGINT), -signal.SIGINT)])
def test_dead_after_the_last_word_of_the_worker(
    rig: "Rig", counter: str, played: Played, said: int, status: int
) -> None:
    process = started(rig, counter)
    conn = played.take()
    ready(conn)
    assert conn.recv(1) == wire.GO
    conn.send(wire.REPLY.pack(wire.LEAVING, said))
    played.leave()
    conn.close()
    assert process.wait(WATCHDOG_S) == status
    assert runs(rig) == []


TORN_DOWN = (
    "import sys\n"
    "class Kept:\n"
    "    def __del__(self): print('finalised', flush=True)\n"
    "kept = Kept()\n"
    "print('up', flush=True)\n"
    "sys.stdin.read()\n"
    "sys.exit(6)\n"
)


def test_a_killed_server_does_not_take_the_status_of_a_full_end(rig: "Rig") -> None:
    script = rig.script("torn", TORN_DOWN)
    rig.start(script)
    process = started(rig, script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    (pid,) = rig.server_pids()
    os.kill(pid, signal.SIGKILL)
    until_gone(pid)
    shown, _ = process.communicate(timeout=WATCHDOG_S)
    assert (process.returncode, shown) == (6, b"finalised\n")


def test_a_worker_killed_after_its_server_is_reported(rig: "Rig") -> None:
    script = rig.script("known", "import os, sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()\n")
    rig.start(script)
    with (rig.directory / "said").open("wb") as file:
        process = started(rig, script, stderr=file)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    (pid,) = rig.server_pids()
    os.kill(pid, signal.SIGKILL)
    until_gone(pid)
    os.kill(worker, signal.SIGKILL)
    said = last_word(rig, process)
    assert (process.returncode, said.startswith(UNKNOWN)) == (255, True)


def has_begun(rig: "Rig", burst: int) -> bool:
    """Return whether as many commands of a burst have begun as its number."""
    return len([name for name in runs(rig) if name.startswith(f"{burst}-")]) >= burst


def test_servers_killed_under_many_clients_run_nothing_twice(rig: "Rig") -> None:
    text = (
        "import os, sys\nfd = os.open('runs', os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
        "os.write(fd, (sys.argv[1] + '\\n').encode())\n"
    )
    script = rig.script("named", text)
    outcomes: dict[str, int] = {}
    for burst in range(6):
        rig.start(script)
        (pid,) = rig.server_pids()
        here = {f"{burst}-{n}": started(rig, script, f"{burst}-{n}") for n in range(12)}
        # At another moment each time: after that many commands have begun.
        until(partial(has_begun, rig, burst))
        os.kill(pid, signal.SIGKILL)
        for name, process in here.items():
            process.communicate(timeout=WATCHDOG_S)
            outcomes[name] = process.returncode
    ran = runs(rig)
    assert len(ran) == len(set(ran)), "a command has run twice"
    assert set(outcomes.values()) <= {0, 255}
    assert {name for name, status in outcomes.items() if status == 0} <= set(ran)


# -- the clock ---------------------------------------------------------------

VALUE = "import sys, mod\nprint(mod.VALUE, 'warm' if '_unsnarl_warm' in sys.modules else 'plain')\n"


@pytest.mark.parametrize("shift_s", [-86400, 86400])
def test_a_change_is_noticed_whatever_its_time(rig: "Rig", shift_s: int) -> None:
    module = rig.directory / "bin" / "mod.py"
    module.write_text("VALUE = 1\n")
    script = rig.script("value", VALUE)
    rig.start(script)
    assert rig.warm(script).stdout == b"1 warm\n", rig.log()
    before = module.stat()
    module.write_text("VALUE = 2\n")
    shifted_ns = before.st_mtime_ns + shift_s * 10**9
    os.utime(module, ns=(shifted_ns, shifted_ns))
    assert rig.warm(script).stdout.split()[0] == b"2"
    rig.start(script)
    assert rig.warm(script).stdout == b"2 warm\n", rig.log()


def test_a_verdict_falls_with_a_file_that_is_older_than_before(rig: "Rig") -> None:
    script = rig.script("talker", "print('run')\n")
    module = rig.directory / "bin" / "mod.py"
    module.write_text("import os\nos.getppid()\n")
    Path(script).write_text(Path(script).read_text() + "import mod\n")
    rig.warm(script)
    until(lambda: list(rig.house.glob("*.rec")))
    assert b"asks for the parent process while it is imported" in rig.verb("why", script).stdout
    Path(script).write_text(Path(script).read_text().replace("import mod\n", ""))
    os.utime(script, (0, 0))
    rig.start(script)
    assert rig.served(script).stdout == b"run\n"


def test_a_start_of_the_future_does_not_hold_the_next_one_off(rig: "Rig", counter: str) -> None:
    rig.start(counter)
    (path,) = rig.house.glob("*.sock")
    (pid,) = rig.server_pids()
    os.kill(pid, signal.SIGKILL)
    until_gone(pid)
    until(lambda: not is_listened_at(path))  # its spares do, until they notice
    lock = path.with_suffix(".lock")
    # As left by a start that has brought no server, before the clock was set back.
    lock.write_text("started\n")
    ahead_ns = lock.stat().st_mtime_ns + 3600 * 10**9
    os.utime(lock, ns=(ahead_ns, ahead_ns))
    rig.start(counter)
    assert rig.served(counter).returncode == 5


def test_a_clock_set_back_ends_no_server(rig: "Rig") -> None:
    # The server reads the time of day from a file here.
    (rig.directory / "clock").mkdir()
    (rig.directory / "clock" / "sitecustomize.py").write_text(
        "import os, time\n"
        "def shifted(real=time.time):\n"
        f"    return real() - 86400 * os.path.exists({str(rig.directory / 'back')!r})\n"
        "time.time = shifted\n"
    )
    env = rig.env | {"PYTHONPATH": str(rig.directory / "clock")}
    script = rig.script("setter", f"open({str(rig.directory / 'back')!r}, 'w').close()\n")
    rig.start(script, env=env)
    (pid,) = rig.server_pids()
    for _ in range(3):
        assert rig.served(script, env=env).returncode == 0, rig.log()
    assert rig.server_pids() == [pid], rig.log()


# -- a command that outlives things --------------------------------------------


def test_a_command_outlives_the_idle_time_of_its_server(rig: "Rig") -> None:
    rig.env["UNSNARL_WARM_IDLE"] = "1"
    # Twice the idle time, as two hours are usually.
    script = rig.script("long", "import sys, time\nprint('up', flush=True)\ntime.sleep(2)\nsys.exit(7)\n")
    process = None
    while process is None:
        rig.start(script)
        process = served_or_none(rig, script)
    assert process.wait(WATCHDOG_S) == 7
    # Clients that repeatedly ask whether the server is there do not keep it up.
    until(lambda: not rig.server_pids())
    assert "ends, idle" in rig.log()


def served_or_none(rig: "Rig", script: str) -> "subprocess.Popen[bytes] | None":
    """Start a command that a worker takes; None if no server was there in time."""
    words = [UNSNARL, "warm", "run", "--require", "--", script]
    process = subprocess.Popen(words, env=rig.env, cwd=rig.directory / "work", stdout=subprocess.PIPE)
    rig.processes.append(process)
    assert process.stdout is not None
    if process.stdout.readline() == b"up\n":
        return process
    assert process.wait(WATCHDOG_S) == 69
    return None


def test_a_command_outlives_the_server_that_has_become_stale(rig: "Rig") -> None:
    module = rig.directory / "bin" / "mod.py"
    module.write_text("VALUE = 1\n")
    text = (
        f"import sys, mod\n{LISTENS}"
        "signal.signal(signal.SIGTERM, lambda *args: sys.exit(40 + mod.VALUE))\n"
        "print(mod.VALUE, 'warm' if '_unsnarl_warm' in sys.modules else 'plain', flush=True)\n"
        f"while sys.argv[1:]: {LISTEN}"
    )
    script = rig.script("holder", text)
    rig.start(script)
    (first,) = rig.server_pids()
    old = started(rig, script, "wait")
    assert old.stdout is not None
    assert old.stdout.readline() == b"1 warm\n"
    module.write_text("VALUE = 2 \n")
    rig.start(script)
    (second,) = rig.server_pids()
    assert second != first
    assert rig.served(script).stdout == b"2 warm\n"
    # It runs on with its descriptors, still gets signals, and its server ends after it.
    with contextlib.suppress(FileNotFoundError):
        assert Path(f"/proc/{first}/comm").exists()
    old.terminate()
    assert old.wait(WATCHDOG_S) == 41
    until_gone(first)
    assert rig.server_pids() == [second]
