"""A thread that starves is not reported as the victim of one call into C, nor as the caller of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.trace_programs import line_of, needs_hooks, trace

if TYPE_CHECKING:
    from tests.conftest import Programs

STARVED = """\
import os, threading, time
is_over = False
def burn():
    global is_over
    until = time.perf_counter() + 1
    while (now := time.perf_counter()) < until:
        while time.perf_counter() < now + 0.0003:
            pass
        os.stat(".")  # gives the GIL up, and takes it back before the waiter is awake
    is_over = True
def tick():
    while not is_over:
        time.sleep(0.001)
threads = [threading.Thread(target=burn, name="burner"), threading.Thread(target=tick, name="ticker")]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


TRIES = 3


def long_holds(programs: Programs) -> object:
    """Trace the program; return the findings that report a long hold of the thread."""
    traced = trace(programs, STARVED)
    [process] = traced.processes
    burner = [thread["name"] for thread in process["threads"]].index("burner")
    assert process["threads"][burner]["takes"] > 100
    held = sum(hold["length_ns"] for hold in process["long_holds"] if hold["thread"] == burner)
    found = [finding for finding in traced.of_kind("long-hold") if finding["thread"] == "burner"]
    if held >= 0.2 * process["threads"][burner]["running_ns"]:
        return process["long_holds"]
    return found if sum(finding["figures"]["count"] for finding in found) > 2 else None


def test_short_calls_while_somebody_waits_are_not_merged_into_a_long_hold(programs: Programs) -> None:
    """A thread without a processor has a long hold as well, so a few long holds are accepted.

    A run on a busy machine is repeated; merged calls would give long holds in every run.
    """
    needs_hooks()
    problems: list[object] = []
    for _ in range(TRIES):
        problem = long_holds(programs)
        if not problem:
            return
        problems.append(problem)
    raise AssertionError(problems)


WITHOUT_A_PROCESSOR = """\
import os, subprocess, sys, threading, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
spinner = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"], env={})
is_over = False
def tick():
    while not is_over:
        time.sleep(0.001)
base = 7 ** 200_000  # before another thread waits for it
ticker = threading.Thread(target=tick, name="ticker")
ticker.start()
try:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 15)
    until = time.thread_time() + 0.2
    while time.thread_time() < until:
        WORK
finally:
    spinner.kill()
    spinner.wait()
is_over = True
ticker.join()
"""
"""The main thread has a thirtieth of a processor, and the thread that wants the GIL all that it needs."""


def test_a_thread_without_a_processor_makes_no_long_call(programs: Programs) -> None:
    """The kernel decides for how long the thread starves, so a run in which it hardly did is repeated."""
    needs_hooks()
    for _ in range(TRIES):
        traced = trace(programs, WITHOUT_A_PROCESSOR.replace("WORK", "sum(map(abs, range(100)))"))
        process = traced.processes[0]
        assert not traced.of_kind("long-hold"), process["long_holds"]
        if max((hold["length_ns"] for hold in process["long_holds"]), default=0) > 30_000_000:
            assert traced.of_kind("no-processor"), process["long_holds"]
            return
    raise AssertionError("the spinner took no processor")


def test_a_long_call_is_one_also_beside_a_busy_process(programs: Programs) -> None:
    needs_hooks()
    program = WITHOUT_A_PROCESSOR.replace("WORK", "pow(base, 3)  # CALL")
    [finding] = trace(programs, program).of_kind("long-hold")
    assert finding["thread"] == "MainThread"
    assert f"app.py:{line_of(program, '  # CALL')} in " in str(finding["place"])
