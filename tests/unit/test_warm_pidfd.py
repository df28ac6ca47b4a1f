"""Descriptors of processes, with the interpreter's functions and without them, as in builds for old kernels."""

from __future__ import annotations

import subprocess
import sys

import pytest

WATCHDOG_S = 60
PROGRAM = """
import _signal, os, select, sys
from unsnarl.warm import pidfd
if sys.argv[1] == "old":
    del os.pidfd_open, _signal.pidfd_send_signal
loaded = set(sys.modules)
child = os.fork()
if not child:
    while True:
        _signal.pause()
fd = pidfd.open_of(child)
assert not os.get_inheritable(fd)
assert not select.select([fd], [], [], 0)[0]
pidfd.send_signal(fd, _signal.SIGKILL)
assert select.select([fd], [], [], 30)[0] == [fd]
assert os.waitpid(child, 0)[1] == _signal.SIGKILL
for call in (lambda: pidfd.open_of(child), lambda: pidfd.send_signal(fd, _signal.SIGTERM)):
    try:
        call()
    except ProcessLookupError:
        continue
    raise SystemExit("no error")
assert sys.modules.keys() == loaded, sys.modules.keys() ^ loaded
"""


@pytest.mark.parametrize("build", ["old", "new"])
def test_a_process_is_watched_and_signalled(build: str) -> None:
    subprocess.run([sys.executable, "-c", PROGRAM, build], check=True, timeout=WATCHDOG_S)
