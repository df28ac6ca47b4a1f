"""Named segments: which process may use them, when they are removed, and what damage they withstand."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import random
import subprocess
import sys
from pathlib import Path

import pytest

from unsnarl import Empty, Full, ShutDown, ipc
from unsnarl.cli import main

PREFIX = f"unsnarl-{os.geteuid()}-"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for this test's segments, so that it sees no others: a tmpfs, as in production."""
    monkeypatch.setenv("UNSNARL_SHM", str(tmp_path))
    return tmp_path


def test_the_last_user_removes_it(directory: Path) -> None:
    one, other = ipc.Lock("a"), ipc.Lock("a")
    file = directory / f"{PREFIX}a"
    assert file.stat().st_mode & 0o777 == 0o600
    one.acquire()
    assert other.locked()
    one.release()
    one.close()
    assert file.exists()
    del other
    assert not file.exists()


def test_a_forked_child_is_a_user(directory: Path) -> None:
    program = """
import os, sys
from unsnarl import ipc
lock = ipc.Lock("a")
read, write = os.pipe()
child = os.fork()
if child == 0:
    os.close(write)
    os.read(read, 1)
    os._exit(0 if os.listdir(sys.argv[1]) else 1)
lock.close()
assert os.listdir(sys.argv[1]), "removed under the child"
os.close(write)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    completed = subprocess.run([sys.executable, "-c", program, str(directory)], timeout=60, check=False)
    assert completed.returncode == 0


def test_a_crash_leaves_it_and_the_next_user_is_told(
    directory: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = """
import os, signal
from unsnarl import ipc
lock = ipc.Lock("a")
lock.acquire()
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert main(["ipc", "list"]) == 0
    assert "Lock" in capfd.readouterr().out
    lock = ipc.Lock("a")
    with pytest.raises(ipc.OwnerDied):
        lock.acquire()
    assert lock.locked()
    assert main(["ipc", "rm", "a"]) == 1
    assert "in use" in capfd.readouterr().err
    lock.close()
    assert main(["ipc", "rm", "a"]) == 1
    assert "no segment" in capfd.readouterr().err


def test_normal_exit_removes_it(directory: Path) -> None:
    program = "from unsnarl import ipc\nkept = ipc.Semaphore(3, name='a')\nkept.acquire()"
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
    assert not list(directory.iterdir())


def test_another_kind_is_refused(directory: Path) -> None:
    kept = ipc.Lock("a")
    with pytest.raises(ipc.SegmentRefused, match="is a Lock"):
        _ = ipc.Event("a")
    del kept


@pytest.mark.parametrize("name", ["", "a/b", "..\0", "ü", "x" * 201])
def test_names_are_checked(directory: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a valid name"):
        ipc.Lock(name)
    assert not list(directory.iterdir())


def test_foreign_files_are_refused(directory: Path) -> None:
    path = directory / f"{PREFIX}a"
    path.symlink_to("/etc/passwd")
    with pytest.raises(ipc.SegmentRefused, match="symbolic link"):
        ipc.Lock("a")
    path.unlink()
    path.mkdir(0o600)
    with pytest.raises((ipc.SegmentRefused, OSError)):
        ipc.Lock("a")
    path.rmdir()
    path.write_bytes(b"")
    with pytest.raises(ipc.SegmentRefused, match="0600"):
        ipc.Lock("a")
    path.chmod(0o600)
    with pytest.raises(ipc.SegmentRefused, match="not as long"):
        ipc.Lock("a")
    path.write_bytes(random.Random(1).randbytes(4096))
    with pytest.raises(ipc.SegmentRefused, match="damaged"):
        ipc.Lock("a")


def test_another_version_is_refused(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    kept = ipc.Lock("a")
    path = directory / f"{PREFIX}a"
    content = bytearray(path.read_bytes())
    ours = content[12]  # the upper half of the second word
    content[12] += 1
    del kept
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(ipc.SegmentRefused, match=f"layout {ours}"):
        ipc.Lock("a")
    assert main(["ipc", "list"]) == 0
    _, line, problem = capfd.readouterr().out.splitlines()
    assert line.split()[:2] == ["a", "refused"]
    assert problem.endswith(f"has layout {ours + 1}, this unsnarl has layout {ours}")
    assert main(["ipc", "rm", "a"]) == 0
    assert not list(directory.iterdir())


def test_any_content_gives_an_answer(directory: Path) -> None:
    """Overwrite the words of a running queue: its users get results or errors."""
    queue = ipc.BytesQueue(0, "a", capacity=4096)
    path = directory / f"{PREFIX}a"
    dice = random.Random(2)
    errors = (RuntimeError, ValueError, Empty, Full, ShutDown)
    with path.open("r+b", buffering=0) as file:
        for _ in range(300):
            for _ in range(3):
                with contextlib.suppress(*errors):
                    queue.put_bytes(dice.randbytes(20), timeout=0)
            file.seek(4096 + 64 + 8 * dice.randrange(1, 8))
            file.write(dice.randbytes(8))
            file.seek(4096 + 64)
            file.write(bytes(4))  # not the guard: a thread that does not exist would hold it for ever
            file.seek(dice.randrange(4096))
            file.write(dice.randbytes(8))
            with contextlib.suppress(*errors):
                queue.get_bytes(timeout=0)


def test_a_missing_directory_is_an_error(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSNARL_SHM", str(directory / "missing"))
    with pytest.raises(OSError, match="cannot make the segment"):
        ipc.Lock("a")
    with ipc.Lock():
        pass  # without a name no directory is needed


def test_a_name_can_be_pickled_and_nothing_else(directory: Path) -> None:
    lock = ipc.RLock("a")
    again = pickle.loads(pickle.dumps(lock))
    with lock:
        assert again.locked()
    with pytest.raises(RuntimeError, match="inheritance"):
        pickle.dumps(ipc.Lock())


def test_import_is_lazy() -> None:
    program = "import sys, unsnarl; sys.exit('unsnarl.ipc' in sys.modules or 'multiprocessing' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0


def test_repr_names_the_holder() -> None:
    lock = ipc.Lock()
    with lock:
        assert f"process {os.getpid()}, started" in repr(lock)
    assert "unlocked" in repr(lock)


def test_misuse() -> None:
    with pytest.raises(RuntimeError):
        ipc.Lock().release()
    with pytest.raises(RuntimeError):
        ipc.RLock().release()
    with pytest.raises(ValueError, match="too many"):
        ipc.BoundedSemaphore(1).release()
    with pytest.raises(ValueError, match="below zero"):
        ipc.CountdownEvent(1).down(2)
    with pytest.raises(RuntimeError):
        ipc.Condition().notify()
    with pytest.raises(TypeError):
        _ = ipc.Condition(object())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="does not fit"):
        ipc.Queue(capacity=64).put(b"x" * 100_000)


class Celsius(float):
    """A class of this module, which unpickling finds by name."""


def test_items_keep_their_types() -> None:
    items: list[object] = [
        0, -1, 2**63 - 1, -(2**63), 2**63, 10**100, True, False, None, 1.5, float("inf"), "", "ä€😀", "\ud800", b"",
        b"\x80\x00", bytearray(b"x"), (1, "two", None), {"a": [b"c"]}, Celsius(3.0), 1j,
    ]  # fmt: skip
    for queue in (ipc.Queue(), ipc.get_context("fork").Queue()):
        for item in items:
            queue.put(item)
        for item in items:
            got = queue.get(timeout=60)
            assert (type(got), got) == (type(item), item)
        assert queue.empty()


def test_queue_is_iterated_in_a_task() -> None:
    queue = ipc.Queue()
    for number in range(3):
        queue.put(number)
    queue.shutdown()
    assert queue.is_shutdown

    async def main() -> list[object]:
        return [item async for item in queue]

    assert asyncio.run(main()) == [0, 1, 2]


def test_queue_starts_anew_and_goes_round() -> None:
    queue = ipc.BytesQueue(capacity=8192)
    for length in (10, 3000, 5000, 100, 7000, 0) * 50:
        queue.put_bytes(b"x" * length, False)
        if length % 3:
            queue.put_bytes(b"y", False)
            assert queue.get_bytes(False) == b"x" * length
            assert queue.get_bytes(False) == b"y"
        else:
            assert queue.get_bytes(False) == b"x" * length
