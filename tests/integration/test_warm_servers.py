"""Servers: one per key, replaced when stale, bounded, and never in the way."""

import concurrent.futures
import contextlib
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import LISTEN, LISTENS, WATCHDOG_S, until, until_gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.integration.conftest import Rig

WHO = "import sys, mod\nprint(mod.VALUE, 'warm' if '_unsnarl_warm' in sys.modules else 'plain')\n"


def client(rig: "Rig", *words: str, **options: object) -> "subprocess.Popen[bytes]":
    """Start a warm command without waiting for its end."""
    from tests.integration.conftest import UNSNARL

    settings: dict[str, object] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    settings |= {"env": rig.env, "cwd": rig.directory / "work"} | options
    process = subprocess.Popen([UNSNARL, "warm", "run", "--require", "--", *words], **settings)  # type: ignore[call-overload]
    rig.processes.append(process)
    return process  # type: ignore[no-any-return]


def module(rig: "Rig", value: int) -> None:
    """Write the module that WHO imports, in one step."""
    path = rig.directory / "bin" / "mod.py"
    path.with_suffix(".new").write_text(f"VALUE = {value}\n" + "#" * value)  # another size: a .pyc knows whole seconds
    os.replace(path.with_suffix(".new"), path)


def is_alive(pid: int) -> bool:
    """Return whether a process lives and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_changed_module_is_never_served(rig: "Rig") -> None:
    module(rig, 0)
    script = rig.script("who", WHO)
    for value in range(1, 6):
        rig.start(script)
        assert rig.warm(script).stdout.endswith(b"warm\n"), rig.log()
        module(rig, value)
        assert rig.warm(script).stdout.split()[0] == str(value).encode()


def test_a_new_module_that_hides_another_is_noticed(rig: "Rig") -> None:
    script = rig.script("who", "import json, sys\nprint(json.__file__)\n")
    rig.start(script)
    rig.warm(script)
    (rig.directory / "bin" / "json.py").write_text("")
    assert rig.warm(script).stdout == rig.plain(script).stdout


@pytest.mark.parametrize("name", ["tool-1.0.dist-info", "tool.egg-info", "tool", "tool.pth"])
def test_what_an_installation_adds_is_noticed(rig: "Rig", name: str) -> None:
    (rig.directory / "bin" / "mod.py").write_text(
        f"import os\nVALUE = {name!r} in os.listdir(os.path.dirname(__file__))\n"
    )
    script = rig.script("who", WHO)
    rig.start(script)
    assert rig.served(script).stdout == b"False warm\n"
    path = rig.directory / "bin" / name
    path.write_text("") if name.endswith(".pth") else path.mkdir()
    assert rig.warm(script).stdout == b"True plain\n"


@pytest.mark.parametrize("opened", ["os.fsencode(path)", "pathlib.Path(path)", "path"])
def test_a_file_that_imports_have_read_is_watched(rig: "Rig", opened: str) -> None:
    data = rig.directory / "data"
    data.mkdir()
    (data / "value").write_text("1")
    (rig.directory / "bin" / "mod.py").write_text(
        f"import os, pathlib\npath = {str(data / 'value')!r}\nfd = os.open({opened}, os.O_RDONLY)\n"
        "VALUE = os.read(fd, 9).decode()\nos.close(fd)\n"
    )
    script = rig.script("who", WHO)
    rig.start(script)
    assert rig.served(script).stdout == b"1 warm\n"
    (data / "value").write_text("2")
    assert rig.warm(script).stdout == b"2 plain\n"


def test_a_plugin_of_one_run_is_not_the_next_ones(rig: "Rig") -> None:
    (rig.directory / "bin" / "host.py").write_text("LOADED = {}\n")
    (rig.directory / "bin" / "plug.py").write_text("import host\nhost.LOADED['plug'] = 1\n")
    (rig.directory / "bin" / "quiet.py").write_text("import host\n")
    text = (
        "import sys, host\nfor name in sys.argv[1:]: __import__(name)\n"
        "print(sorted(host.LOADED), 'plug' in sys.modules)\n"
    )
    script = rig.script("pluggable", text)
    rig.start(script)
    assert rig.served(script, "plug", "quiet").stdout == b"['plug'] True\n"
    # The successor learns: it leaves the one module out, and imports the other.
    until(lambda: b"plug is not imported ahead" in rig.verb("why", script).stdout)
    rig.start(script)
    assert rig.warm(script).stdout == b"[] False\n", rig.log()
    assert "module\tquiet" in "".join(path.read_text() for path in rig.house.glob("*.facts"))


@pytest.mark.parametrize("names", [{}, {"PYTHONPATH": "."}], ids=["no locale", "relative path"])
def test_a_successor_serves_the_same_callers(rig: "Rig", names: dict[str, str]) -> None:
    # If the successor's key differed, no client would use it.
    rig.env = {name: value for name, value in rig.env.items() if not name.startswith(("LANG", "LC_"))} | names
    (rig.directory / "bin" / "quiet.py").write_text("")
    script = rig.script("loads", "import sys\nprint('quiet' in sys.modules)\n__import__(sys.argv[1])\n")
    rig.start(script)
    (server,) = rig.server_pids()
    assert rig.served(script, "quiet").stdout == b"False\n"
    until_gone(server)
    rig.start(script)
    assert rig.served(script, "quiet").stdout == b"True\n", rig.log()
    assert len(rig.server_pids()) == 1


def test_what_the_server_does_between_runs_is_not_learned_from_them(rig: "Rig") -> None:
    script = rig.script("quiet", "import sys\nprint('warm' if '_unsnarl_warm' in sys.modules else 'plain')\n")
    rig.start(script)
    server = rig.server_pids()
    # More than there are spares: the last ones are forked after the first one was examined.
    for _ in range(8):
        assert rig.served(script).stdout == b"warm\n"
    assert not list(rig.house.glob("*.wanted"))
    assert rig.server_pids() == server, rig.log()


def test_many_clients_at_once_find_one_server(rig: "Rig") -> None:
    module(rig, 7)
    script = rig.script("who", WHO)
    rig.start(script)
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        outcomes = list(pool.map(lambda _: rig.warm(script), range(200)))
    assert {outcome.returncode for outcome in outcomes} == {0}
    assert {outcome.stdout.split()[0] for outcome in outcomes} == {b"7"}
    assert len(rig.server_pids()) == 1


def test_many_cold_clients_start_one_server(rig: "Rig") -> None:
    module(rig, 7)
    script = rig.script("who", WHO)
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda _: rig.warm(script), range(16)))
    assert {outcome.stdout.split()[0] for outcome in outcomes} == {b"7"}
    rig.start(script)
    assert len(rig.server_pids()) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("kept = open(__file__)\n", b"open"),
        ("import os\nos.umask(0o077)\n", b"changes the file mode mask"),
    ],
)
def test_what_cannot_be_imported_ahead_is_explained(rig: "Rig", text: str, reason: bytes) -> None:
    (rig.directory / "bin" / "mod.py").write_text(text + "VALUE = 1\n")
    script = rig.script("who", WHO)
    rig.warm(script)
    until(lambda: list(rig.house.glob("*.rec")))
    outcome = rig.warm(script)
    assert outcome.stdout.endswith(b"1 plain\n")
    assert reason in rig.verb("why", str(script)).stdout


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "import threading, time\nthreading.Thread(target=time.sleep, args=(1,), daemon=True).start()\n",
            b"starts a thread",
        ),
        ("import socket\ns = socket.socket()\ns.connect_ex(('127.0.0.1', 9))\n", b"connects a socket"),
        ("print('hello')\n", b"prints while it is imported"),
        ("import os\nCOPY = dict(os.environ)\n", b"reads the whole environment"),
        ("import os\nHERE = os.environ.get('OLDPWD')\n", b"$OLDPWD"),
        ("import os\nfor n in range(200): os.path.exists(str(n))\n", b"looks at many files of the working directory"),
    ],
)
def test_what_each_run_imports_itself_is_explained(rig: "Rig", text: str, reason: bytes) -> None:
    (rig.directory / "bin" / "mod.py").write_text(text + "VALUE = 1\n")
    script = rig.script("who", WHO)
    rig.start(script)
    assert rig.served(script).stdout == rig.plain(script).stdout.replace(b"1 plain", b"1 warm")
    assert b"mod is not imported ahead: mod " in rig.verb("why", str(script)).stdout
    assert reason in rig.verb("why", str(script)).stdout


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        ((), 2, b"error: no command given\n"),
        (("no-such-command",), 127, b"error: no such command: no-such-command\n"),
        (("/no/such/command",), 127, b"error: no such command: /no/such/command\n"),
        (("/no/such/python3", "x.py"), 127, b"error: no such interpreter: /no/such/python3\n"),
        (("/bin/true",), 2, b"error: no Python command: /bin/true\n"),
    ],
)
def test_what_no_server_can_be_started_for_is_said(
    rig: "Rig", words: tuple[str, ...], status: int, complaint: bytes
) -> None:
    done = rig.verb("start", "--", *words)
    assert (done.returncode, done.stdout) == (status, b"")
    assert done.stderr.startswith(complaint + b"hint: ")


def test_the_status_before_anything_was_learned_says_so(rig: "Rig") -> None:
    rig.env["HOME"] = str(rig.directory)  # where shims are
    assert rig.verb("status").stdout.startswith(b"no shim, no server, and no command that was learned; ")
    rig.start(rig.script("who", WHO))
    assert b"no server" not in rig.verb("status").stdout


def test_an_unsafe_directory_is_not_used(rig: "Rig") -> None:
    module(rig, 1)
    script = rig.script("who", WHO)
    rig.start(script)
    rig.house.chmod(0o755)
    assert rig.warm(script).stdout == b"1 plain\n"
    assert rig.verb("status").returncode == 1
    rig.house.chmod(0o700)
    assert rig.warm(script).stdout == b"1 warm\n"
    moved = rig.directory / "moved"
    rig.house.rename(moved)
    rig.house.symlink_to(moved)
    assert rig.warm(script).stdout == b"1 plain\n"
    rig.house.unlink()
    moved.rename(rig.house)


def test_a_stale_socket_is_replaced(rig: "Rig") -> None:
    module(rig, 1)
    script = rig.script("who", WHO)
    rig.start(script)
    (pid,) = rig.server_pids()
    os.kill(pid, signal.SIGKILL)
    until_gone(pid)
    assert rig.warm(script).stdout.startswith(b"1 ")
    rig.start(script)
    assert rig.warm(script).stdout == b"1 warm\n", rig.log()


def test_a_silent_peer_does_not_stop_the_others(rig: "Rig") -> None:
    module(rig, 1)
    script = rig.script("who", WHO)
    rig.start(script)
    (path,) = rig.house.glob("*.sock")
    here = os.open(rig.house, os.O_PATH)
    silent = []
    for _ in range(3):
        peer = socket.socket(socket.AF_UNIX)
        peer.connect(f"/proc/self/fd/{here}/{path.name}")
        peer.send(b"UNSW")
        silent.append(peer)
    assert rig.warm(script).stdout == b"1 warm\n"
    for garbage in (b"\0" * 16, b"UNSW\1\0\xff\xff\xff\xff\xff\xff" + bytes(8), os.urandom(4096)):
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(f"/proc/self/fd/{here}/{path.name}")
            peer.send(garbage)
    assert rig.warm(script).stdout == b"1 warm\n"
    for peer in silent:
        peer.close()
    os.close(here)


SLEEPER = f"{LISTENS}print(os.getpid(), flush=True)\nwhile True: {LISTEN}"


@pytest.mark.parametrize(
    "signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM]
)
def test_a_signal_to_the_client_ends_the_command(rig: "Rig", signum: signal.Signals) -> None:
    script = rig.script("sleeper", SLEEPER)
    rig.start(script)
    process = client(rig, script)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    assert worker != process.pid
    process.send_signal(signum)
    assert process.wait(WATCHDOG_S) == -signum
    until_gone(worker)


def test_a_handled_signal_is_the_commands(rig: "Rig") -> None:
    script = rig.script(
        "handler",
        f"import sys\n{LISTENS}signal.signal(signal.SIGTERM, lambda *a: sys.exit(42))\n"
        f"print('up', flush=True)\nwhile True: {LISTEN}",
    )
    rig.start(script)
    process = client(rig, script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.terminate()
    assert process.wait(WATCHDOG_S) == 42


def test_the_end_of_the_worker_is_the_clients(rig: "Rig") -> None:
    script = rig.script("sleeper", SLEEPER)
    rig.start(script)
    process = client(rig, script)
    assert process.stdout is not None
    os.kill(int(process.stdout.readline()), signal.SIGKILL)
    assert process.wait(WATCHDOG_S) == -signal.SIGKILL


def test_a_killed_client_takes_the_worker_with_it(rig: "Rig") -> None:
    script = rig.script("sleeper", SLEEPER)
    rig.start(script)
    process = client(rig, script)
    assert process.stdout is not None
    worker = int(process.stdout.readline())
    process.kill()
    process.wait(WATCHDOG_S)
    until_gone(worker)


def test_a_killed_server_leaves_the_command_alone(rig: "Rig") -> None:
    script = rig.script("waiter", "import sys\nprint('up', flush=True)\nsys.stdin.read()\nsys.exit(5)\n")
    rig.start(script)
    process = client(rig, script, stdin=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"up\n"
    (pid,) = rig.server_pids()
    os.kill(pid, signal.SIGKILL)
    until_gone(pid)
    process.stdin.close()
    assert process.wait(WATCHDOG_S) == 5


def test_a_stopped_worker_stops_the_client(rig: "Rig") -> None:
    script = rig.script("sleeper", SLEEPER)
    rig.start(script)
    process = client(rig, script)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGTSTP)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    process.send_signal(signal.SIGCONT)
    process.send_signal(signal.SIGTERM)
    assert process.wait(WATCHDOG_S) == -signal.SIGTERM


def test_a_daemon_of_the_command_outlives_it(rig: "Rig") -> None:
    script = rig.script(
        "daemon",
        "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        r = open('pid', 'w'); r.write(str(os.getpid())); r.close(); os.rename('pid', 'up')\n"
        "        os.closerange(0, 3); time.sleep(600)\n    os._exit(0)\nos.wait()\n",
    )
    rig.start(script)
    assert rig.warm(script).returncode == 0
    up = rig.directory / "work" / "up"
    until(up.exists)
    daemon = int(up.read_text())
    assert is_alive(daemon)
    os.kill(daemon, signal.SIGKILL)


def test_nothing_of_the_environment_reaches_the_disk(rig: "Rig") -> None:
    module(rig, 1)
    script = rig.script("who", WHO)
    env = rig.env | {"TOKEN": "s3cr3t-value", "PYTHONSECRET": "s3cr3t-value"}
    rig.start(script, env=env)
    rig.warm(script, env=env)
    seen = list(contents(rig.house))
    assert seen
    assert not any(b"s3cr3t" in data for _, data in seen)
    assert {mode for mode, _ in seen} == {0o600}


def contents(house: Path) -> "Iterator[tuple[int, bytes]]":
    """Yield mode and contents of each file; the server may remove some while it is read."""
    for path in house.iterdir():
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISREG(path.lstat().st_mode):
                with open(path, "rb") as file:
                    yield stat.S_IMODE(os.fstat(file.fileno()).st_mode), file.read()


def test_a_shim_is_enabled_and_disabled(rig: "Rig") -> None:
    module(rig, 3)
    script = rig.script("who", WHO)
    enabled = rig.verb("enable", script)
    assert enabled.returncode == 0, enabled.stderr
    shim = rig.directory / "data" / "unsnarl" / "shims" / "who"
    rig.start(str(shim))
    assert rig.plain(str(shim)).stdout == b"3 warm\n"
    assert str(shim.parent).encode() in rig.verb("shellenv").stdout
    assert rig.verb("disable", "who").returncode == 0
    assert not shim.exists()
    assert rig.verb("disable", "who").stderr.startswith(b"error: no shim named 'who'")


def test_off_is_off(rig: "Rig") -> None:
    module(rig, 3)
    script = rig.script("who", WHO)
    rig.start(script)
    assert rig.warm(script, env=rig.env | {"UNSNARL": "off"}).stdout == b"3 plain\n"
    assert sys.executable


def test_the_last_call_is_counted_without_another_one(rig: "Rig") -> None:
    """A call that ends within a second of the last publication of the state was shown after a minute."""
    script = rig.script("brief", "print(1)\n")
    rig.start(script)
    begun = time.monotonic()
    for _ in range(3):
        assert rig.warm(script).returncode == 0, rig.log()
    until(lambda: b"  3 requests  0 running" in rig.verb("status").stdout)
    assert time.monotonic() - begun < 55, "it was the minute after which an idle server publishes its state"
