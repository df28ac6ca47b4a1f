"""The recorder's clock: the processor's counter and libc's clock both give the times of CLOCK_MONOTONIC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.trace_programs import needs_hooks

if TYPE_CHECKING:
    from tests.conftest import Programs

# Alternately short and long, so that the line from counter to clock is renewed at every age.
SLEEPS = """\
import json, os, sys, time
from unsnarl import _native
has_counter = sys.argv[1] == "counter"
_native.trace_start("app.trace", 64, "", 0, 5_000_000, has_counter=has_counter)
sleeps = []
for number in range(60):
    began = time.monotonic_ns()
    time.sleep(0.02 if number % 4 else 0.001)
    sleeps.append((began, time.monotonic_ns()))
time.sleep(1)
began = time.monotonic_ns()
time.sleep(0.005)
sleeps.append((began, time.monotonic_ns()))
if sys.argv[2] == "killed":
    print(json.dumps(sleeps), flush=True)
    os.abort()
_native.trace_stop()
print(json.dumps(sleeps))
"""
ASLEEP = 4
COUNTERS = ("tsc", "arch_sys_counter")
ERROR_NS = 250_000
"""A line is at most half a second long; a clock that is being corrected departs from it by 500 in a million."""


def kernel_counts() -> bool:
    """Tell whether the kernel's clock source is a counter that programs can read."""
    try:
        return Path("/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text().strip() in COUNTERS
    except OSError:
        return False


def read(path: Path) -> dict[str, Any]:
    from unsnarl import _native

    summary: dict[str, Any] = json.loads(_native.trace_read(str(path)))
    return summary


@pytest.mark.parametrize("ending", ["ended", "killed"])
@pytest.mark.parametrize("clock", ["counter", "libc"])
def test_times_are_those_of_the_clock(programs: Programs, clock: str, ending: str) -> None:
    """Each sleep lies between the program's own readings of the clock around it."""
    needs_hooks()
    outcome = programs.python("-c", SLEEPS, clock, ending)
    assert (outcome.status == 0) is (ending == "ended"), outcome.complaint
    sleeps: list[tuple[int, int]] = json.loads(outcome.stdout)
    summary = read(programs.directory / "app.trace")
    assert summary["is_complete"] is (ending == "ended")
    assert summary["is_counted"] is (clock == "counter" and kernel_counts())
    [thread] = summary["threads"]
    recorded = [
        (summary["started_ns"] + begin_ns, summary["started_ns"] + begin_ns + length_ns)
        for begin_ns, length_ns, state, _ in thread["stretches"]
        if state == ASLEEP
    ]
    recorded.pop(-2)  # the long one
    assert len(recorded) == len(sleeps)
    for (began_ns, ended_ns), (before_ns, after_ns) in zip(recorded, sleeps, strict=True):
        assert before_ns - ERROR_NS <= began_ns < ended_ns <= after_ns + ERROR_NS
        assert ended_ns - began_ns >= 1_000_000 - ERROR_NS
