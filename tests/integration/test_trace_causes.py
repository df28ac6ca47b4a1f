"""The trace names a known cause with its thread and line, and finds no cause in programs without one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.integration.trace_programs import Traced, line_of, needs_hooks, trace

if TYPE_CHECKING:
    from tests.conftest import Programs


@pytest.fixture(autouse=True)
def hooked() -> None:
    needs_hooks()


CONVOY = """\
import socket, threading, time
is_over = False
def burn():
    total = 0
    while not is_over:
        for number in range(1000):
            total += number  # burns
def health():
    ours, theirs = socket.socketpair()
    for _ in range(40):
        ours.send(b"?")
        theirs.recv(1)
        time.sleep(0.002)  # rests
worker = threading.Thread(target=burn, name="worker-3")
check = threading.Thread(target=health, name="health")
worker.start(); check.start(); check.join()
is_over = True
worker.join()
"""

HELD_ACROSS_IO = """\
import threading, time, socket
lock = threading.Lock()
ours, theirs = socket.socketpair()
is_held, go_on = threading.Event(), threading.Semaphore(0)
def writer():
    for _ in range(8):
        with lock:
            is_held.set()
            theirs.recv(1)  # waits for the network
        go_on.acquire()
def reader():
    for _ in range(8):
        is_held.wait()
        is_held.clear()
        threading.Timer(0.02, ours.send, [b"x"]).start()
        with lock:  # wants it
            pass
        go_on.release()
threads = [threading.Thread(target=writer, name="writer"), threading.Thread(target=reader, name="reader")]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

SQUARE = """\
import threading, time
is_over = False
def spin():
    while not is_over:
        pass
threads = [threading.Thread(target=spin, name=f"spin-{n}") for n in range(24)]
for thread in threads: thread.start()
time.sleep(0.5)
is_over = True
for thread in threads: thread.join()
"""

LONG_CALL = """\
import threading, time, timeit
numbers = bytes(1_000_000)
while min(timeit.repeat(lambda: sum(numbers), number=1)) < 0.1:  # machines and interpreters differ by a lot
    numbers += numbers
is_over = False
def tick():
    while not is_over:
        time.sleep(0.001)
def count():
    global is_over
    for _ in range(2):
        until = time.perf_counter() + 0.2
        while time.perf_counter() < until:
            pass
        sum(numbers)  # one call into C
    is_over = True
threads = [threading.Thread(target=count, name="counter"), threading.Thread(target=tick, name="ticker")]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""

STORM = """\
import queue, threading
there, back = queue.Queue(1), queue.Queue(1)
def serve():
    for _ in range(5000):
        there.put(1)  # serves
        back.get()
def answer():
    for _ in range(5000):
        back.put(there.get())  # answers
threads = [threading.Thread(target=serve, name="serve"), threading.Thread(target=answer, name="answer")]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def with_lock_of(library: str, text: str) -> str:
    """Return the program with a lock of another library, otherwise unchanged."""
    return text.replace("threading.Lock()", f"{library}.Lock()").replace("import ", f"import {library}, ", 1)


def test_a_convoy(programs: Programs) -> None:
    traced = trace(programs, CONVOY)
    finding = next(found for found in traced.of_kind("convoy") if found["thread"] == "health")
    assert finding["figures"]["holder"] == "worker-3"
    assert re.search(r"app\.py:[4-8] in burn$", finding["place"])
    assert finding["remedy"]["command"] == "unsnarl run"
    assert "each time behind thread `worker-3`" in traced.outcome.complaint


@pytest.mark.parametrize("library", ["threading", "unsnarl"])
def test_a_lock_held_across_io(programs: Programs, library: str) -> None:
    traced = trace(programs, with_lock_of(library, HELD_ACROSS_IO))
    finding = next(found for found in traced.of_kind("contended-lock") if found["thread"] == "reader")
    assert f"app.py:{line_of(HELD_ACROSS_IO, '# wants it')} in reader" in finding["figures"]["waits_at"]
    assert f"app.py:{line_of(HELD_ACROSS_IO, '# waits for the network')} in writer" in finding["place"]
    assert finding["figures"]["across_io"] == 1
    assert "will not help" in finding["remedy"]["what"]


def test_a_square(programs: Programs) -> None:
    traced = trace(programs, SQUARE)
    [finding] = traced.of_kind("square")
    assert finding["figures"]["waiters"] > 15
    assert finding["remedy"]["command"] == "unsnarl run"


def test_a_call_that_holds_the_gil(programs: Programs) -> None:
    traced = trace(programs, LONG_CALL)
    place = f"app.py:{line_of(LONG_CALL, '# one call into C')} in count"
    finding = next(found for found in traced.of_kind("long-hold") if place in found["place"])
    assert finding["thread"] == "counter"
    assert "will not help" in finding["remedy"]["what"]


def test_a_slow_import(programs: Programs) -> None:
    programs.write("molasses.py", "import time\ntime.sleep(0.3)\nimport treacle\n")
    programs.write("treacle.py", "")
    traced = trace(programs, "import molasses\n")
    finding = next(found for found in traced.of_kind("slow-import") if found["place"] == "molasses")
    assert 0.29e9 < finding["figures"]["self_ns"] < finding["figures"]["total_ns"] + 1
    names = [entry["name"] for entry in traced.processes[0]["imports"]]
    parent = {entry["name"]: entry["parent"] for entry in traced.processes[0]["imports"]}["treacle"]
    assert names[parent] == "molasses"


LATE_IMPORTS = """
import importlib.util, sys, time
spec = importlib.util.find_spec("lazy")
spec.loader = importlib.util.LazyLoader(spec.loader)
lazy = sys.modules["lazy"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(lazy)
def late():
    import in_function
time.sleep(0.1)
late()
print(lazy.inner.VALUE)
importlib.reload(lazy.inner)
"""


def test_imports_after_the_first_line_and_bodies_run_on_first_touch(programs: Programs) -> None:
    """Each module appears once, under the importer: a body that runs within its own import is part of that import."""
    programs.write("lazy.py", "import time\ntime.sleep(0.3)\nimport inner\n")
    programs.write("inner.py", "import time\ntime.sleep(0.2)\nVALUE = 'touched'\n")
    programs.write("in_function.py", "import inner_of_function\n")
    programs.write("inner_of_function.py", "")
    traced = trace(programs, LATE_IMPORTS)
    assert traced.outcome.stdout == b"touched\n"
    entries = traced.processes[0]["imports"]
    parents = [
        (entry["name"], None if entry["parent"] is None else entries[entry["parent"]]["name"])
        for entry in entries
        if entry["name"] in ("lazy", "inner", "in_function", "inner_of_function")
    ]
    assert parents == [
        ("in_function", None),
        ("inner_of_function", "in_function"),
        ("lazy", None),
        ("inner", "lazy"),
        ("inner", None),
    ]
    lazy = next(entry for entry in entries if entry["name"] == "lazy")
    assert lazy["self_ns"] >= 0.29e9
    assert lazy["total_ns"] >= 0.49e9
    [finding] = traced.of_kind("slow-import")
    assert {finding["place"], *re.findall("`([a-z]+)` [0-9]", " ".join(finding["details"]))} >= {"lazy", "inner"}


def test_a_futex_storm(programs: Programs) -> None:
    traced = trace(programs, STORM)
    if not traced.of_kind("futex-storm"):
        # A machine too busy for 4,000 waits a second has no storm.
        process = traced.processes[0]
        waits = sum(thread["lock_waits"] for thread in process["threads"])
        assert waits / (process["length_ns"] / 1e9) < 4000
        return
    [finding] = traced.of_kind("futex-storm")
    assert finding["thread"] in ("serve", "answer")


@pytest.mark.parametrize(
    "text",
    [
        "for number in range(300_000): number * 2\n",
        "import threading, time\nt = threading.Thread(target=time.sleep, args=(0.2,))\nt.start(); t.join()\n",
        "",
    ],
    ids=["one thread", "an idle thread", "nothing"],
)
def test_a_program_without_a_cause_is_told_so(programs: Programs, text: str) -> None:
    """At least one of three runs: a busy machine can create a cause, but a wrong rule finds one each time."""
    traced = trace(programs, text)
    for _ in range(2):
        if is_told_so(traced):
            break
        traced = trace(programs, text)
    assert is_told_so(traced), (traced.document["findings"], traced.outcome.complaint)


def is_told_so(traced: Traced) -> bool:
    """Tell whether no cause was found."""
    is_severe = any(finding["severity"] == "severe" for finding in traced.document["findings"])
    return (
        {"no-gil-contention", "no-lock-contention"} <= traced.kinds()
        and not is_severe
        and "not the cause" in traced.outcome.complaint
    )


CLOCKED = """\
import threading, time
started = time.monotonic()
time.sleep(0.8)
slept = time.monotonic() - started
lock = threading.Lock()
lock.acquire()
def release():
    time.sleep(0.7)
    lock.release()
helper = threading.Thread(target=release, name="helper")
started = time.monotonic()
# Starting and joining a thread are waits for locks, too.
helper.start()
lock.acquire()
helper.join()
blocked = time.monotonic() - started
print(slept, blocked)
"""


C_CODE = """\
import hashlib, socket, threading, time
text = bytes(5_000_000)
ours, theirs = socket.socketpair()
def compute():
    # Many calls of some milliseconds each: a call during which the machine stalls counts as I/O.
    for _ in range(40):
        hashlib.sha256(text)
    print(time.thread_time())
def wait():
    theirs.recv(1)
threads = [threading.Thread(target=wait, name="waits"), threading.Thread(target=compute, name="computes")]
for thread in threads: thread.start()
threads[1].join()
ours.send(b"x")
threads[0].join()
"""


def test_c_code_without_the_gil_is_told_from_io(programs: Programs) -> None:
    traced = trace(programs, C_CODE)
    computes, waits = traced.thread("computes"), traced.thread("waits")
    assert computes["computing_ns"] / 1e9 == pytest.approx(float(traced.outcome.stdout), rel=0.1)
    assert waits["computing_ns"] == 0
    assert waits["io_ns"] > computes["computing_ns"] * 0.9


@pytest.mark.parametrize("library", ["threading", "unsnarl"])
def test_durations_agree_with_an_outside_clock(programs: Programs, library: str) -> None:
    traced = trace(programs, with_lock_of(library, CLOCKED))
    slept, blocked = map(float, traced.outcome.stdout.split())
    main = traced.thread("MainThread")
    # Between two readings of the clock, the thread may have waited for the GIL and for a processor.
    other_s = (main["running_ns"] + main["waiting_ns"]) / 1e9
    for total, clocked_s in (("asleep_ns", slept), ("on_lock_ns", blocked)):
        assert clocked_s * 0.98 - other_s <= main[total] / 1e9 <= clocked_s * 1.02, (total, slept, blocked, main)


def test_a_scheduled_program_is_recorded_as_such(programs: Programs) -> None:
    """Does not assert that the convoy has ended: a busy machine creates waits by itself."""
    traced = trace(programs, CONVOY, "--scheduler")
    assert traced.processes[0]["is_scheduled"]
