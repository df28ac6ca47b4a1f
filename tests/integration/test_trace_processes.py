"""Several processes, very many threads, very long runs: each is recorded separately, within bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.trace_programs import needs_hooks, trace, trace_words

if TYPE_CHECKING:
    from tests.conftest import Programs


@pytest.fixture(autouse=True)
def hooked() -> None:
    needs_hooks()


QUIET = {"PYTHONWARNINGS": "ignore"}

FORK = """\
import os, sys, threading, time
thread = threading.Thread(target=time.sleep, args=(0.1,), name="parent's")
thread.start()
pid = os.fork()
if pid == 0:
    thread = threading.Thread(target=time.sleep, args=(0.05,), name="child's")
    thread.start(); thread.join()
    sys.exit(0)
os.waitpid(pid, 0)
thread.join()
"""


def names(process: dict[str, list[dict[str, str]]]) -> set[str]:
    return {thread["name"] for thread in process["threads"]}


def test_a_fork(programs: Programs) -> None:
    traced = trace(programs, FORK, env=QUIET)
    parent, child = traced.processes
    assert child["parent"] == parent["pid"]
    assert "child's" in names(child)
    assert "child's" not in names(parent)
    assert "parent's" in names(parent)


def test_children_can_be_left_out(programs: Programs) -> None:
    assert len(trace(programs, FORK, "--no-children", env=QUIET).processes) == 1


def test_an_exec(programs: Programs) -> None:
    text = "import os, sys\nif len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, __file__, 'again'])\n"
    before, after = trace(programs, text).processes
    assert before["pid"] == after["pid"]
    assert after["text"].endswith("again")
    assert not before["is_complete"]
    assert after["is_complete"]


def test_a_pool_of_processes(programs: Programs) -> None:
    text = """\
import multiprocessing, os
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(abs, range(10))))
        pool.close(); pool.join()
"""
    traced = trace(programs, text)
    assert traced.outcome.stdout == b"45\n"
    assert len(traced.processes) >= 3


def test_a_fork_in_a_thread_and_threads_in_its_child(programs: Programs) -> None:
    text = """\
import os, threading
def fork():
    pid = os.fork()
    if pid == 0:
        threads = [threading.Thread(target=sum, args=(range(1000),)) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        os._exit(5)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
thread = threading.Thread(target=fork, name="forker")
thread.start(); thread.join()
"""
    traced = trace(programs, text, env=QUIET)
    assert traced.outcome.stdout == b"5\n"
    assert len(traced.processes) == 2


def test_a_child_that_nobody_has_waited_for_yet_has_ended(programs: Programs) -> None:
    text = """\
import os, time
pid = os.fork()
if pid == 0:
    os._exit(0)
time.sleep(0.8)
os.waitpid(pid, 0)
"""
    traced = trace(programs, text, env=QUIET)
    parent, child = sorted(traced.processes, key=lambda process: -process["length_ns"])
    assert child["length_ns"] < parent["length_ns"] // 2


THOUSAND = """\
import threading
gate = threading.Barrier(1001)
def work():
    gate.wait()
    sum(range(100))
threads = [threading.Thread(target=work, name=f"many-{number}") for number in range(1000)]
for thread in threads: thread.start()
gate.wait()
for thread in threads: thread.join()
"""


def test_a_thousand_threads(programs: Programs) -> None:
    traced = trace(programs, THOUSAND)
    [process] = traced.processes
    assert process["thread_count"] >= 1001
    found = names(process)
    assert sum(f"many-{number}" in found for number in range(1000)) >= 990


ENDLESS = """\
import threading, time
import wave  # at the start, whose records are kept
def work():
    for _ in range(20_000):
        time.sleep(0.000001)
threads = [threading.Thread(target=work, name=f"busy-{number}") for number in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_a_long_run_is_bounded_and_says_what_it_lost(programs: Programs) -> None:
    traced = trace(programs, ENDLESS, "--size", "1", "--keep")
    [process] = traced.processes
    assert process["overwritten"] > 0
    assert process["records_from_ns"] > 0
    assert process["start_until_ns"] >= process["first_line_ns"] > 0
    assert "wave" in {entry["name"] for entry in process["imports"]}
    assert "lost-records" in traced.kinds()
    # The totals still cover the whole run.
    assert all(traced.thread(f"busy-{number}")["takes"] >= 20_000 for number in range(2))
    [directory] = [entry for entry in programs.directory.iterdir() if entry.name.startswith(".unsnarl-trace-")]
    assert sum(file.stat().st_size for file in directory.iterdir()) < 4 << 20


def test_a_program_in_subinterpreters(programs: Programs) -> None:
    text = """\
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
made = interpreters.create()
run = interpreters.exec if hasattr(interpreters, "exec") else interpreters.run_string
run(made, "import threading; print(sum(range(10)), flush=True)")
interpreters.destroy(made)
"""
    traced = trace_words(programs, "-W", "ignore", "-c", text)
    assert traced.outcome.status == 0, traced.outcome.complaint
    assert traced.outcome.stdout == b"45\n"
