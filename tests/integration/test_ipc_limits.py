"""The primitives between processes at the limits of the machine: memory, names, processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CROWD = Path(__file__).with_name("ipc_crowd.py")

FULL = """
import os, sys
from unsnarl import ipc

directory = os.environ["UNSNARL_SHM"]
try:
    ipc.BytesQueue(capacity=1 << 20, name="large")
except OSError as error:
    print(error)
else:
    sys.exit("made more than there is room for")
assert not os.listdir(directory), os.listdir(directory)

locks = []
try:
    while True:
        locks.append(ipc.Lock(f"lock.{len(locks)}"))
except OSError as error:
    assert "make room" in str(error), error
assert 0 < len(locks) < 100, len(locks)
for lock in locks:
    with lock:
        assert lock.locked()
# Without a name no room is needed there.
queue = ipc.get_context("fork").Queue()
queue.put(b"x" * 100_000)
assert queue.get(timeout=60) == b"x" * 100_000
while locks:
    locks.pop().close()
assert not os.listdir(directory), os.listdir(directory)
print("room again" if ipc.Lock("lock.0").acquire() else "")
"""


def _with_a_tiny_directory(directory: Path, program: str) -> list[str]:
    """Return a command that runs the program with a private tmpfs of 64 KiB."""
    unshare, mount = shutil.which("unshare"), shutil.which("mount")
    if unshare is None or mount is None:
        pytest.skip("this machine has no unshare(1) or no mount(8)")
    become = [unshare, "--mount"] if os.geteuid() == 0 else [unshare, "--mount", "--map-root-user"]
    script = f'{mount} -t tmpfs -o size=64k,mode=0700 tmpfs "$1" && exec "$2" -c "$3"'
    command = [*become, "sh", "-c", script, "sh", str(directory), sys.executable, program]
    probe = subprocess.run([*command[:-1], "print('yes')"], capture_output=True, text=True, timeout=60, check=False)
    if probe.stdout != "yes\n":
        pytest.skip(f"no mount namespace here: {probe.stderr.strip()}")
    return command


def test_a_full_directory_is_an_error(tmp_path: Path) -> None:
    command = _with_a_tiny_directory(tmp_path, FULL)
    environment = {**os.environ, "UNSNARL_SHM": str(tmp_path)}
    completed = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert "make room" in completed.stdout
    assert completed.stdout.endswith("room again\n")


def test_a_missing_directory_leaves_what_has_no_name(tmp_path: Path) -> None:
    environment = {**os.environ, "UNSNARL_SHM": str(tmp_path / "missing")}
    command = [sys.executable, str(CROWD), "20"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False, env=environment)
    assert completed.returncode == 0, completed.stdout + completed.stderr


def test_five_hundred_processes_share_everything() -> None:
    command = [sys.executable, str(CROWD), "500"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert completed.stdout == "500 processes met\n"
