"""Behaviour that programs written for multiprocessing rely on, and that once differed here."""

from __future__ import annotations

import copyreg
import ctypes
import errno
import logging
import logging.config
import logging.handlers
import math
import mmap
import multiprocessing
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from functools import partial
from multiprocessing import queues
from pathlib import Path
from typing import Any

import pytest

from tests.contract.crew import TIMEOUT_S
from unsnarl import ipc
from unsnarl._native import ipc_directory
from unsnarl.ipc import process_queue, spill
from unsnarl.ipc.process_queue import JoinableQueue, ProcessQueue

# Several of these programs have threads, of which CPython warns at a fork.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")

FORK = ipc.get_context("fork")
FUTEX = {"x86_64": 202, "aarch64": 98}
LONG = b"x" * 40_000


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Queues with room for one long item, and a separate directory of segments."""
    monkeypatch.setenv("UNSNARL_SHM", str(tmp_path_factory.mktemp("segments")))
    monkeypatch.setattr(process_queue, "CAPACITY", 1 << 16)


def spilled() -> list[str]:
    """Return the files of items that no process has taken."""
    return [name for name in os.listdir(ipc_directory()) if name.startswith(spill.PREFIX)]


def test_join_waits_for_items_that_wait_for_room() -> None:
    queue = JoinableQueue()
    for _ in range(3):
        queue.put(LONG)
    assert queue.statistics()["unfinished"] == 3
    for left in (2, 1, 0):
        assert queue.get(timeout=TIMEOUT_S) == LONG
        assert not queue.join(0.001)
        queue.task_done()
        assert queue.statistics()["unfinished"] == left
    assert queue.join(TIMEOUT_S)


def _promise_and_stay(queue: JoinableQueue, ready: Any) -> None:
    for _ in range(3):
        queue.put(LONG)
    ready.set()
    while True:
        signal.pause()


def test_join_does_not_wait_for_what_a_dead_process_would_have_put() -> None:
    queue, ready = FORK.JoinableQueue(), FORK.Event()
    process = FORK.Process(target=_promise_and_stay, args=(queue, ready))
    process.start()
    assert ready.wait(TIMEOUT_S)
    assert queue.statistics()["unfinished"] == 3
    process.kill()
    process.join()
    while not queue.empty():
        queue.get()
        queue.task_done()
    assert queue.join(TIMEOUT_S)


def _let_in(memory: mmap.mmap, at: int) -> None:
    """Leave the guard once a thread waits for it, as its holder would."""
    while not int.from_bytes(memory[at : at + 4], "little") & 1 << 31:
        os.sched_yield()
    memory[at : at + 4] = bytes(4)
    word = ctypes.c_char.from_buffer(memory, at)
    ctypes.CDLL(None).syscall(FUTEX[os.uname().machine], ctypes.byref(word), 1, 1)


@pytest.mark.skipif(os.uname().machine not in FUTEX, reason="needs the number of futex(2)")
def test_a_busy_guard_is_not_a_full_queue() -> None:
    items = ipc.Queue(5, name="busy-guard")
    path = Path(ipc_directory()) / f"unsnarl-{os.geteuid()}-busy-guard"
    with path.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 0)
    guard = len(memory) - mmap.PAGESIZE + 64
    memory[guard : guard + 4] = threading.get_native_id().to_bytes(4, "little")
    leaver = threading.Thread(target=_let_in, args=(memory, guard))
    leaver.start()
    items.put_nowait([1])
    leaver.join()
    assert items.get_nowait() == [1]


def _notify_and_die(condition: Any) -> None:
    condition.acquire()
    condition.notify()
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_condition_gives_all_levels_back_with_the_news_of_a_death() -> None:
    condition = FORK.Condition()
    with condition:
        with condition:
            process = FORK.Process(target=_notify_and_die, args=(condition,))
            process.start()
            with pytest.raises(ipc.OwnerDied):
                condition.wait(TIMEOUT_S)
            assert condition._lock.statistics()["depth"] == 2
            condition._lock.make_consistent()
        assert condition._lock.statistics()["depth"] == 1
    process.join()


def test_timeouts_are_multiprocessings() -> None:
    bounded = ProcessQueue(1)
    bounded.put([1], 1)  # type: ignore[arg-type]
    with pytest.raises(queue.Full):
        bounded.put([1], True, -1)
    with pytest.raises(queue.Full):
        bounded.put([1], 0)  # type: ignore[arg-type]
    assert bounded.get(True, -1) == [1]
    with pytest.raises(queue.Empty):
        bounded.get(True, -1)
    assert FORK.Lock().acquire(timeout=math.inf)
    assert FORK.Lock().acquire(True, 1e12)
    event = FORK.Event()
    event.set()
    assert event.wait(1e10)


def test_what_is_not_held_is_refused_as_by_both_modules() -> None:
    condition = FORK.Condition()
    for kind, refused in [
        (ValueError, FORK.Lock().release),
        (AssertionError, FORK.RLock().release),
        (AssertionError, condition.wait),
        (AssertionError, condition.notify),
    ]:
        for expected in (kind, RuntimeError):
            with pytest.raises(expected):
                refused()


def test_a_place_is_all_that_a_bounded_put_waits_for() -> None:
    bounded = ProcessQueue(3)
    for _ in range(3):
        bounded.put_nowait(LONG)
    assert bounded.full()
    with pytest.raises(queue.Full):
        bounded.put(LONG, timeout=0.001)
    assert [bounded.get_nowait() for _ in range(3)] == [LONG] * 3
    assert spilled() == []


def test_a_failed_put_leaves_no_file() -> None:
    bounded = ProcessQueue(1)
    bounded.put(0)
    for block in (False, True):
        with pytest.raises(queue.Full):
            bounded.put(LONG * 2, block, 0.001)
    assert spilled() == []


def test_a_full_directory_is_not_the_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    written = spill._written

    def full(data: bytes, where: str | None) -> str:
        if where == ipc_directory():
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(data, str(tmp_path))

    monkeypatch.setattr(spill, "_written", full)
    items = ProcessQueue()
    items.put(LONG * 2)
    assert len(list(tmp_path.iterdir())) == 1
    assert items.get(timeout=TIMEOUT_S) == LONG * 2
    assert list(tmp_path.iterdir()) == []


class Registered:
    """An object that the last registered reducer pickles."""


def _reduced(word: str, _: Registered) -> tuple[type[str], tuple[str]]:
    return str, (word,)


def test_a_reducer_that_is_registered_anew_is_used() -> None:
    items = ProcessQueue()
    for word in ("one", "two"):
        copyreg.dispatch_table[Registered] = partial(_reduced, word)
        items.put(Registered())
    assert [items.get(timeout=TIMEOUT_S) for _ in range(2)] == ["one", "two"]


def test_what_is_gone_is_not_made_anew_with_other_numbers() -> None:
    for kind in (ipc.Barrier, ipc.BoundedSemaphore, ipc.Queue):
        made = kind(3, name="gone")
        pickled = pickle.dumps(made)
        assert pickle.loads(pickled).name == "gone"
        made.close()
        with pytest.raises(ipc.SegmentRefused, match="gone"):
            pickle.loads(pickled)
    lock = ipc.Lock(name="gone")
    pickled = pickle.dumps(lock)
    lock.close()
    assert pickle.loads(pickled).acquire(timeout=0)


LIMITED = """
import resource
from unsnarl import ipc
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
locks = [ipc.Lock() for _ in range(3)]
for lock in locks:
    with lock:
        assert [other.locked() for other in locks].count(True) == 1
try:
    ipc.Queue(capacity=1 << 24)
except OSError as error:
    print(error)
"""


def test_a_limit_for_files_leaves_room_for_locks() -> None:
    ended = subprocess.run([sys.executable, "-c", LIMITED], capture_output=True, text=True, timeout=100, check=False)
    assert (ended.returncode, "ulimit -f" in ended.stdout) == (0, True), ended


FORBIDDEN = """
import asyncio, ctypes, struct, sys
from unsnarl import ipc
from unsnarl.ipc import tasks
event, waits, stock = ipc.Event(), [], tasks.ipc_wait_any
def counted(*arguments):
    waits.append(1)
    return stock(*arguments)
tasks.ipc_wait_any = counted
def step(code, yes, no, number): return struct.pack("HBBI", code, yes, no, number)
rules = ctypes.create_string_buffer(
    step(0x20, 0, 0, 0) + step(0x15, 0, 1, 449) + step(0x06, 0, 0, 0x50001) + step(0x06, 0, 0, 0x7FFF0000))
class Filter(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("rules", ctypes.c_void_p)]
libc = ctypes.CDLL(None)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(Filter(4, ctypes.cast(rules, ctypes.c_void_p)))):
    sys.exit("skip")
asyncio.run(event.async_wait(0.3))
print(len(waits))
"""


def test_tasks_do_not_turn_where_a_call_is_forbidden() -> None:
    ended = subprocess.run([sys.executable, "-c", FORBIDDEN], capture_output=True, text=True, timeout=100, check=False)
    if ended.stderr == "skip\n":
        pytest.skip("no seccomp here")
    assert ended.returncode == 0, ended.stderr
    # A check every millisecond; without a pause there are tens of thousands.
    assert 0 < int(ended.stdout) < 1000


ABROAD = """
import ctypes, os, sys
from unsnarl import ipc
lock, semaphore = ipc.Lock("from-home"), ipc.Semaphore(1)
semaphore.acquire()
if ctypes.CDLL(None).unshare(0x20000000):
    sys.exit("skip")
child = os.fork()
if not child:
    assert not semaphore.acquire(timeout=0.2)
    try:
        ipc.Lock("from-home")
    except ipc.SegmentRefused:
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_in_another_pid_namespace_knows_that_it_is() -> None:
    ended = subprocess.run([sys.executable, "-c", ABROAD], capture_output=True, text=True, timeout=100, check=False)
    if ended.stderr == "skip\n":
        pytest.skip("may not make a pid namespace")
    assert (ended.returncode, ended.stdout) == (0, "7\n"), ended.stderr


def outcome_of_logging_through(items: queue.Queue[Any]) -> str:
    """Have logging put a message into a queue: returns it, or why the versions before 3.13 refuse all queues."""
    handlers = {"queue": {"class": "logging.handlers.QueueHandler", "queue": items}}
    logger = {"handlers": ["queue"], "level": "INFO", "propagate": False}
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": handlers,
        "loggers": {"unsnarl.test": logger},
    }
    try:
        logging.config.dictConfig(config)
        logging.getLogger("unsnarl.test").info("hello")
        return str(items.get(timeout=TIMEOUT_S).getMessage())
    except ValueError as refusal:
        return str(refusal.__cause__)
    finally:
        logging.getLogger("unsnarl.test").handlers.clear()


def test_a_queue_is_one_of_multiprocessings_for_who_asks() -> None:
    assert isinstance(FORK.Queue(), queues.Queue)
    assert isinstance(FORK.JoinableQueue(), queues.JoinableQueue)
    stock: Any = multiprocessing.get_context("fork").Queue()
    assert outcome_of_logging_through(FORK.Queue()) == outcome_of_logging_through(stock)
    stock.close()
    stock.join_thread()


@pytest.mark.parametrize("module", [multiprocessing, ipc], ids=["multiprocessing", "unsnarl"])
def test_the_writing_end_can_be_closed_after_the_end(module: Any) -> None:
    """As a remedy for issue 42752 of CPython; the items that were put are not lost by it."""
    queue = module.get_context("fork").Queue()
    queue.put("put before")

    def close() -> None:
        queue.put("put by the child")
        queue.close()
        queue.join_thread()
        queue._writer.close()

    child = module.get_context("fork").Process(target=close)
    child.start()
    child.join(TIMEOUT_S)
    assert child.exitcode == 0
    assert {queue.get(timeout=TIMEOUT_S) for _ in range(2)} == {"put before", "put by the child"}


def test_the_end_of_a_thread_is_not_told_as_the_death_of_its_process() -> None:
    lock = ipc.Lock()
    thread = threading.Thread(target=lock.acquire)
    thread.start()
    thread.join()
    with pytest.raises(ipc.OwnerDied, match=f"process {os.getpid()}.*one of its threads ended"):
        lock.acquire(timeout=TIMEOUT_S)
    lock.make_consistent()
    lock.release()
