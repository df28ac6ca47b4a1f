"""On a real terminal, under a real shell: job control, signals, passwords, window size."""

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.waiting import LISTEN, LISTENS, WATCHDOG_S, until, until_gone

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

PROMPT = b"ready>"


class Terminal:
    """A bash with job control on a pseudo-terminal."""

    def __init__(self, rig: "Rig") -> None:
        self.fd, theirs = os.openpty()
        shell = ["setsid", "--ctty", "bash", "--norc", "--noprofile", "--noediting", "-i"]
        env = rig.env | {"PS1": PROMPT.decode(), "TERM": "dumb", "HISTFILE": "", "INPUTRC": "/dev/null"}
        self.shell = subprocess.Popen(
            shell, stdin=theirs, stdout=theirs, stderr=theirs, cwd=rig.directory / "work", env=env
        )
        os.close(theirs)
        self.wait_for(PROMPT)

    def type(self, text: str) -> None:
        """Type keys."""
        os.write(self.fd, text.encode())

    def wait_for(self, pattern: bytes) -> bytes:
        """Read until a pattern appears; return all output so far."""
        seen = b""
        deadline = time.monotonic() + WATCHDOG_S
        while not re.search(pattern, seen):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{pattern!r} did not show up in {seen!r}"
            seen += os.read(self.fd, 4096)
        return seen

    def run(self, line: str) -> bytes:
        """Run a line of shell to its end; return its output."""
        self.type(line + "\n")
        return self.wait_for(rb"\n[^\n]*" + PROMPT)

    def close(self) -> None:
        """Hang up."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
        self.shell.kill()
        self.shell.wait(WATCHDOG_S)


@pytest.fixture
def terminal(rig: "Rig") -> Iterator[Terminal]:
    """A terminal, hung up at the end."""
    terminal = Terminal(rig)
    yield terminal
    terminal.close()


def prepare(rig: "Rig", terminal: Terminal, text: str) -> str:
    """Write a script and start its server from within the terminal; return the words that run it."""
    script = rig.script("cmd", text)
    assert b"rc=0" in terminal.run(f"{UNSNARL} warm start -- {script}; echo rc=$?"), rig.log()
    return f"{UNSNARL} warm run --require -- {script}"


SLEEPER = f"""
import sys
{LISTENS}
signal.signal(signal.SIGCONT, lambda *args: os.write(1, b"continued\\n"))
try:
    print("up", "warm" if "_unsnarl_warm" in sys.modules else "plain", "in", os.getpgrp(), flush=True)
    while True: {LISTEN}
except KeyboardInterrupt:
    print("interrupted")
    sys.exit(9)
"""


def test_a_key_interrupts_once(rig: "Rig", terminal: Terminal) -> None:
    command = prepare(rig, terminal, SLEEPER)
    terminal.type(command + "; echo status=$?\n")
    terminal.wait_for(b"up warm")
    terminal.type("\x03")
    assert terminal.wait_for(rb"status=\d+").count(b"interrupted") == 1


def test_stop_background_and_foreground(rig: "Rig", terminal: Terminal) -> None:
    command = prepare(rig, terminal, SLEEPER)
    terminal.type(command + "\n")
    job = int(terminal.wait_for(rb"up warm in \d+\r\n").split()[-1])
    terminal.type("\x1a")
    terminal.wait_for(rb"(?s)Stopped.*" + PROMPT)
    assert b"Running" in terminal.run("bg; jobs -r; true")
    # A key typed before the shell has handed the terminal over would be the shell's.
    terminal.type("fg\n")
    until(lambda: os.tcgetpgrp(terminal.fd) == job)
    terminal.type("\x1a")
    terminal.wait_for(b"Stopped")
    # And one typed before the job runs again is undone by the signal that continues it.
    terminal.type("fg; echo status=$?\n")
    terminal.wait_for(b"continued")
    terminal.type("\x03")
    terminal.wait_for(b"status=9")


def test_quit_ends_by_the_signal(rig: "Rig", terminal: Terminal) -> None:
    command = prepare(rig, terminal, SLEEPER)
    terminal.type(command + "; echo status=$?\n")
    terminal.wait_for(b"up warm")
    terminal.type("\x1c")
    terminal.wait_for(b"status=131")


def test_a_password_is_read_from_the_terminal_without_echo(rig: "Rig", terminal: Terminal) -> None:
    text = "import getpass, sys\nsys.stdin.read()\nprint('got', getpass.getpass('secret: ')[::-1])\n"
    command = prepare(rig, terminal, text)
    terminal.type(f"{command} < /dev/null; echo\n")
    terminal.wait_for(b"secret: ")
    terminal.type("abc\n")
    seen = terminal.wait_for(b"got cba")
    assert b"abc" not in seen


def test_the_terminal_is_the_controlling_one(rig: "Rig", terminal: Terminal) -> None:
    text = (
        "import os, sys\nfd = os.open('/dev/tty', os.O_RDWR)\n"
        "print('same', os.tcgetpgrp(fd) == os.getpgrp(), os.getsid(0) == int(sys.argv[1]), sys.stdout.line_buffering)\n"
    )
    command = prepare(rig, terminal, text)
    assert b"same True True True" in terminal.run(f"{command} $$")


def test_imports_that_keep_the_size_of_the_terminal_have_a_server_for_each_size(rig: "Rig", terminal: Terminal) -> None:
    (rig.directory / "bin" / "mod.py").write_text(
        "import fcntl, os, struct, termios\n"
        "SIZE = os.get_terminal_size(1), struct.unpack('4H', fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))\n"
    )
    text = "import mod\nprint('size', *mod.SIZE[0], *mod.SIZE[1])\n"
    for rows, columns in ((33, 77), (44, 99)):
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
        warm = prepare(rig, terminal, text)
        assert f"size {columns} {rows} {rows} {columns} 0 0".encode() in terminal.run(warm), rig.log()


def test_the_size_of_the_window_is_noticed(rig: "Rig", terminal: Terminal) -> None:
    text = (
        f"import sys\n{LISTENS}"
        "def changed(*args): os.write(1, b'size %d %d' % os.get_terminal_size(0)); sys.exit(0)\n"
        f"signal.signal(signal.SIGWINCH, changed)\nprint('up', flush=True)\nwhile True: {LISTEN}"
    )
    command = prepare(rig, terminal, text)
    terminal.type(command + "\n")
    terminal.wait_for(b"\nup")
    fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("4H", 33, 77, 0, 0))
    terminal.wait_for(b"size 77 33")


def test_a_background_job_that_reads_is_stopped(rig: "Rig", terminal: Terminal) -> None:
    command = prepare(rig, terminal, "import sys\nprint('read', sys.stdin.readline())\n")
    terminal.type(command + " &\n")
    terminal.wait_for(PROMPT)
    terminal.type("\n")
    until(lambda: b"Stopped" in terminal.run("jobs"))
    terminal.type("fg\n")
    terminal.wait_for(b"warm run")
    terminal.type("line\n")
    terminal.wait_for(b"read line")


def test_the_server_ends_with_its_session(rig: "Rig", terminal: Terminal) -> None:
    prepare(rig, terminal, SLEEPER)
    listed = rig.verb("status").stdout.decode()
    server = int(listed.split("pid ")[1].split()[0])
    assert "shared session" in listed
    terminal.close()
    until_gone(server)


def test_an_interpreter_for_old_kernels_has_servers_too(rig: "Rig") -> None:
    """A build with the headers of a kernel before 5.3, as conda's and uv's, lacks these functions."""
    (rig.directory / "old").mkdir()
    text = "import _signal, os\ndel os.pidfd_open, _signal.pidfd_send_signal\n"
    (rig.directory / "old" / "sitecustomize.py").write_text(text)
    rig.env |= {"PYTHONPATH": str(rig.directory / "old"), "UNSNARL_WARM_SPEND": "any"}
    script = rig.script("late", "import os, sys\nprint('_unsnarl_warm' in sys.modules, hasattr(os, 'pidfd_open'))\n")
    terminal = Terminal(rig)
    try:
        line = f"{UNSNARL} warm run -- {script}"
        until(lambda: b"True False" in terminal.run(line))
        server = int(rig.verb("status").stdout.decode().split("pid ")[1].split()[0])
        assert b"AttributeError" not in rig.log().encode()
        assert b"0" in terminal.run(f"{UNSNARL} warm stop; echo $?")
        until_gone(server)
    finally:
        terminal.close()
