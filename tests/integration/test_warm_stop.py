"""After ``warm stop`` no server is left, and no start of before brings one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import WATCHDOG_S, until, until_gone
from unsnarl.warm.managing import runtime_directory

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

# Blocks in the processes whose command line has the word in `role`, until the test lets go of the pipe.
SLOW = """
import os, signal
if os.path.exists({role!r}):
    with open({role!r}) as file, open("/proc/self/cmdline") as own:
        words = file.read().split()
        is_meant = words[0] in own.read().split(chr(0))
    if is_meant:
        if "stubborn" in words:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end = os.open({pipe!r}, os.O_RDONLY)
        while os.read(end, 1):
            pass
        os.close(end)
"""

# Holds the lock of a key and listens at its socket. On a request to end it hands both over first, like a server
# that is replaced at that moment, until no successor is left.
CHAIN = """
import fcntl, os, select, signal, socket, subprocess, sys
house, heirs, lock = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
if lock < 0:
    lock = os.open(house + "/key.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
asked, ask = os.pipe()
os.set_blocking(ask, False)
signal.set_wakeup_fd(ask)
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.chdir(house)
listener = socket.socket(socket.AF_UNIX)
listener.bind(f"{os.getpid()}.tmp")
listener.listen(64)
os.rename(f"{os.getpid()}.tmp", "key.sock")
print("listens", flush=True)
select.select([asked], [], [])
if heirs:
    words = [sys.executable, __file__, house, str(heirs - 1), str(lock)]
    heir = subprocess.Popen(words, pass_fds=[lock], stdout=subprocess.PIPE)
    heir.stdout.read(7)
"""


class Gate:
    """A module that blocks while it is imported, and the other end of its pipe."""

    def __init__(self, rig: "Rig", name: str) -> None:
        self._role = rig.directory / "role"
        self._pipe = rig.directory / "pipe"
        os.mkfifo(self._pipe)
        (rig.directory / "bin" / f"{name}.py").write_text(SLOW.format(role=str(self._role), pipe=str(self._pipe)))
        self._fd = -1

    def shut(self, role: str) -> None:
        """Let the import block in processes of one role: ``probe`` learns, ``serve`` serves."""
        self._role.write_text(role)

    def until_reached(self) -> None:
        """Wait until a process waits at the gate."""

        def is_reached() -> bool:
            try:
                self._fd = os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return False
            return True

        until(is_reached)

    def close(self) -> None:
        """Close the descriptor."""
        if self._fd >= 0:
            os.close(self._fd)


def left(rig: "Rig") -> dict[int, bytes]:
    """Return the processes that mention the runtime directory, and their command lines."""
    found: dict[int, bytes] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if os.fsencode(rig.house) in line:
                found[int(entry.name)] = line
    return found


def at_work(rig: "Rig") -> list[bytes]:
    """Return the command lines of those that serve or are about to at this very moment.

    Such a process holds a lock without a gap. A process without a lock may take its time to end, as it does on a
    busy machine after ``warm stop`` has returned, but it must end.
    """
    found = left(rig)
    holders = [pid for pid in found if runtime_directory.open_locks(pid)]
    for pid in found.keys() - set(holders):
        until_gone(pid)
    return [found[pid] for pid in holders]


@pytest.fixture
def gate(rig: "Rig") -> Iterator[Gate]:
    """A gate in the module ``slow``."""
    gate = Gate(rig, "slow")
    yield gate
    gate.close()


def stopped(rig: "Rig", *names: str) -> list[bytes]:
    """Stop, and return the servers and starts that are left."""
    outcome = rig.verb("stop", *names)
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, b"", b"")
    return at_work(rig)


@pytest.mark.parametrize("role", ["probe", "serve", "serve stubborn"])
def test_a_start_does_not_outlive_a_stop(rig: "Rig", gate: Gate, role: str) -> None:
    script = rig.script("app", "import slow\n")
    gate.shut(role)
    assert rig.served(script).returncode == 69
    gate.until_reached()
    assert left(rig)
    assert stopped(rig) == []
    assert not [*rig.house.glob("learn-*"), *rig.house.glob("*.sock")]


def test_a_successor_does_not_outlive_a_stop(rig: "Rig", gate: Gate) -> None:
    script = rig.script("app", "import sys, importlib\nlen(sys.argv) > 1 and importlib.import_module('slow')\n")
    rig.start(script)
    gate.shut("probe")
    assert rig.served(script, "x").returncode == 0, rig.log()
    gate.until_reached()
    assert stopped(rig) == []
    assert not [*rig.house.glob("learn-*"), *rig.house.glob("*.sock")]


def test_whoever_takes_over_meanwhile_is_stopped_too(rig: "Rig") -> None:
    rig.house.mkdir(mode=0o700)
    chain = rig.directory / "chain.py"
    chain.write_text(CHAIN)
    first = subprocess.Popen([sys.executable, chain, rig.house, "2", "-1"], stdout=subprocess.PIPE)
    rig.processes.append(first)
    assert first.stdout is not None
    assert first.stdout.read(7) == b"listens"
    outcome = rig.verb("stop")
    assert outcome.returncode == 0, outcome.stderr
    first.wait(WATCHDOG_S)
    assert at_work(rig) == []


def test_a_stop_of_one_command_leaves_the_others(rig: "Rig", gate: Gate) -> None:
    other = rig.script("other", "print('other')\n")
    rig.start(other)
    gate.shut("serve")
    assert rig.served(rig.script("app", "import slow\n")).returncode == 69
    gate.until_reached()
    for name in ("other", other):  # by its path, too
        assert stopped(rig, name)
        assert b"/other" not in b"".join(at_work(rig))
        rig.start(other)
    app = [line for line in stopped(rig, "app") if b"/app" in line]
    assert app == []
    assert rig.served(other).stdout == b"other\n"


def test_a_stop_of_nothing_says_so(rig: "Rig") -> None:
    rig.start(rig.script("app", "print('here')\n"))
    unknown = rig.verb("stop", "nosuch")
    assert (unknown.returncode, unknown.stdout) == (0, b"")
    assert unknown.stderr == b"no server of nosuch was running or starting\n"
    assert rig.verb("stop", "app").stderr == b""
    assert rig.verb("stop").stderr == b""


def test_a_start_after_a_stop_comes_up(rig: "Rig", gate: Gate) -> None:
    script = rig.script("app", "import slow\nprint('here')\n")
    gate.shut("serve")
    assert rig.served(script).returncode == 69
    gate.until_reached()
    assert stopped(rig) == []
    gate.shut("nobody")
    rig.start(script)
    assert rig.served(script).stdout == b"here\n"
