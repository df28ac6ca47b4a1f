"""A descriptor that a command closes is closed: no process waits for the client in place of the command.

Invariant: while a command runs, its client holds none of what it has handed over, but a file or a device as
standard error.
"""

import fcntl
import os
import select
import subprocess
from typing import TYPE_CHECKING

from tests.integration.conftest import UNSNARL
from tests.integration.waiting import WATCHDOG_S, until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

CLOSES = """
import os, sys
word, *others = map(int, sys.argv[1:])
for fd in (0, 1, 2, *others):
    os.close(fd)
os.read(word, 1)
os._exit(5)
"""


def has_ended(fd: int) -> bool:
    """Wait until a pipe is readable, and return whether it has reached its end."""
    readable, _, _ = select.select([fd], [], [], WATCHDOG_S)
    return bool(readable) and os.read(fd, 1) == b""


def is_locked(file: int) -> bool:
    """Return whether another process holds the lock of a file."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def test_what_a_command_closes_is_closed(rig: "Rig") -> None:
    script = rig.script("closes", CLOSES)
    rig.start(script)
    wait, word = os.pipe()
    ready, theirs = os.pipe()
    mine = os.open(rig.directory / "locked", os.O_RDWR | os.O_CREAT)
    held = os.open(rig.directory / "locked", os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [UNSNARL, "warm", "run", "--require", "--", script, str(wait), str(theirs), str(held)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=rig.env, cwd=rig.directory / "work", pass_fds=(wait, theirs, held),
    )  # fmt: skip
    rig.processes.append(process)
    for fd in (wait, theirs, held):
        os.close(fd)
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    assert all(has_ended(fd) for fd in (process.stdout.fileno(), process.stderr.fileno(), ready))
    until(lambda: not is_locked(mine))
    # Without a reader the pipe is in error, which poll reports without a request.
    broken = select.poll()
    broken.register(process.stdin, 0)
    until(lambda: broken.poll(0))
    assert process.poll() is None
    os.write(word, b"!")
    assert process.wait(WATCHDOG_S) == 5
    for fd in (mine, word, ready):
        os.close(fd)
