"""The cost of recording a trace: the same work with and without a recording, alternating, in the same process.

``python -m bench.trace_overhead --out FILE`` measures the cases below in short alternating windows, and writes medians,
quartiles and the ratio as JSON. ``--render FILE...`` makes the tables of docs/results/trace-overhead.md from them.
On a machine with other load, processor time is more reliable than the clock, and a case with a narrow goal needs many
pairs; the page gives the confidence interval of the median. With ``TMPDIR`` in memory, the kernel's writing of files to
the disk, for the program and for the recording, does not add to the noise.

- ``hand-overs``: two threads pass single items through two queues of size 1, so that each item is a hand-over of the
  GIL after a wait for a lock, at the highest rate of the machine.
- ``paced``: the same, with work between the items so that there are 50,000 per second without a recording, the rate
  for which the goal of 5 % is set; on a slower machine, at its highest rate.
- ``program``: one thread with files, JSON, regular expressions, a lock and a queue, as in ``bench.gil.overhead``. The
  goal is 1 %.
- ``cpu``: four threads that compute; they hand over at the switch interval.
- ``release``: ``os.lseek`` in a loop, the cheapest call that releases the GIL: the worst case possible, which no real
  program reaches.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import queue
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from bench import machine
from bench.gil.overhead import one_round
from unsnarl import _native

CHUNKS = 8192
WINDOW_S = 0.1
PAIRS_A_PROCESS = 25
ROUNDS, CALIBRATIONS = 1_000_000, 5

Work = Callable[[float], float]
"""Works for some seconds; returns units of work per second."""


class Window(NamedTuple):
    """One window: units of work per second, and nanoseconds of processor time per unit."""

    rate: float
    cpu_ns: float


def timed(work: Work) -> Window:
    """Work through one window."""
    cpu, began = time.process_time_ns(), time.perf_counter()
    rate = work(WINDOW_S)
    elapsed = time.perf_counter() - began
    return Window(rate, (time.process_time_ns() - cpu) / max(rate * elapsed, 1.0))


class HandOvers:
    """Passes items between two threads; returns items per second.

    ``pace`` is the largest number of items per second.
    """

    def __init__(self, pace: float | None = None) -> None:
        self.pace = pace
        self.rounds = 0

    def calibrate(self) -> None:
        """Find the rounds of work between two items that reduce the rate to the pace."""
        if self.pace is None:
            return
        began = time.perf_counter()
        for _ in range(ROUNDS):
            pass
        round_s = (time.perf_counter() - began) / ROUNDS
        for _ in range(CALIBRATIONS):
            missing_s = 1 / self.pace - 1 / self(WINDOW_S)
            self.rounds = max(0, round(self.rounds + missing_s / round_s))

    def __call__(self, seconds: float) -> float:
        there, back = queue.Queue[bool](1), queue.Queue[bool](1)

        def answer() -> None:
            while there.get():
                for _ in rounds:
                    pass
                back.put(True)

        rounds = range(self.rounds)
        thread = threading.Thread(target=answer)
        thread.start()
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            for _ in range(50):
                for _ in rounds:
                    pass
                there.put(True)
                back.get()
            count += 100
        rate = count / (time.perf_counter() - began)
        there.put(False)
        thread.join()
        return rate


def program(seconds: float) -> float:
    """Do what single-threaded programs do; return rounds per second."""
    lock, items = threading.Lock(), queue.Queue[int]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            one_round(path, lock, items)
            count += 1
        return count / (time.perf_counter() - began)


def cpu(seconds: float) -> float:
    """Compute in four threads; return rounds per second."""
    counts = [0] * 4
    ends = time.perf_counter() + seconds

    def compute(place: int) -> None:
        while time.perf_counter() < ends:
            sum(range(2000))
            counts[place] += 1

    threads = [threading.Thread(target=compute, args=(place,)) for place in range(len(counts))]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def release(seconds: float) -> float:
    """Release the GIL and acquire it again; return the number per second."""
    with tempfile.TemporaryFile() as file:
        descriptor, lseek = file.fileno(), os.lseek
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            for _ in range(2000):
                lseek(descriptor, 0, 0)
            count += 2000
        return count / (time.perf_counter() - began)


INTRODUCTION = """\
# What recording costs

Rendered from `bench/results/trace_overhead-*.json`, written by `python -m bench.trace_overhead`, which describes the
cases. A cost is the median over pairs of windows, followed by its 95 % confidence interval (in parentheses) and the
quartiles of the pairs [in brackets]. The work is the same with files on a disk and in memory: on a disk, concurrent
writes of the kernel add to the noise.

`release`, the worst case by construction, releases the GIL and acquires it immediately, millions of times per second.
`program` stands for single-threaded programs; it acquires the GIL as often as the column "GIL taken" shows.
"""

HAND_OVERS_PER_S = 50_000.0
CASES: dict[str, Work] = {
    "hand-overs": HandOvers(),
    "paced": HandOvers(HAND_OVERS_PER_S),
    "program": program,
    "cpu": cpu,
    "release": release,
}
GOALS = {"paced": 5.0, "program": 1.0}
"""Percent."""


def recorded(work: Work, folder: str, number: int) -> tuple[Window, dict[str, Any]]:
    """Work with a recording; return the window, and the content of the recording."""
    path = os.path.join(folder, f"{number}.trace")
    _native.trace_start(path, CHUNKS, "", 0, round(sys.getswitchinterval() * 1e9))
    try:
        window = timed(work)
    finally:
        _native.trace_stop()
    summary: dict[str, Any] = json.loads(_native.trace_read(path))
    os.unlink(path)
    return window, summary


class Windows(NamedTuple):
    """Windows in pairs, and how often per second the GIL was acquired in the recorded ones."""

    plain: list[Window]
    recorded: list[Window]
    takes: list[float]


def alternate(name: str, pairs: int) -> Windows:
    """Measure a case in pairs of windows; the first of a pair alternates."""
    work = CASES[name]
    windows = Windows([], [], [])
    frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
    _native.trace_calibrate(frame.f_code, frame.f_lineno)
    work(WINDOW_S)
    if isinstance(work, HandOvers):
        work.calibrate()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(pairs):
            if number % 2:
                windows.plain.append(timed(work))
            window, summary = recorded(work, folder, number)
            windows.recorded.append(window)
            taken = sum(thread["takes"] for thread in summary["threads"])
            windows.takes.append(taken / (summary["length_ns"] / 1e9))
            if not number % 2:
                windows.plain.append(timed(work))
    return windows


def in_processes(name: str, pairs: int) -> Windows:
    """Measure a case in several processes, one after the other.

    A process keeps the memory of every recording it has made, while a real program makes only one.
    """
    windows = Windows([], [], [])
    for done in range(0, pairs, PAIRS_A_PROCESS):
        share = min(PAIRS_A_PROCESS, pairs - done)
        command = [sys.executable, "-m", "bench.trace_overhead", "--raw", name, "--pairs", str(share)]
        plain, recorded, takes = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
        windows.plain.extend(Window(*window) for window in plain)
        windows.recorded.extend(Window(*window) for window in recorded)
        windows.takes.extend(takes)
    return windows


def measure(name: str, pairs: int) -> dict[str, Any]:
    """Measure a case, and summarise it."""
    plain, traced, takes = in_processes(name, pairs)
    return {
        "case": name,
        "pairs": pairs,
        "plain_per_s": statistics.median(window.rate for window in plain),
        "recorded_per_s": statistics.median(window.rate for window in traced),
        "takes_per_s": statistics.median(takes),
        "wall_cost_percent": summed_up(costs([window.rate for window in plain], [window.rate for window in traced])),
        "cpu_cost_percent": summed_up(costs([window.cpu_ns for window in traced], [window.cpu_ns for window in plain])),
        "goal_percent": GOALS.get(name),
    }


def costs(more: list[float], less: list[float]) -> list[float]:
    """Return the increase, pair by pair, in percent; without windows in which the process never ran."""
    pairs = [(one, other) for one, other in zip(more, less, strict=True) if one and other]
    return [100 * (one / other - 1) for one, other in pairs]


def summed_up(values: list[float]) -> dict[str, float | list[float]]:
    """Return median and quartiles, and the 95 % confidence interval of the median.

    The interval is between two of the sorted values: the number of n values below the median is binomially distributed
    with mean n / 2 and deviation sqrt(n) / 2, for any distribution of the values (H. A. David, Order Statistics, 7.1).
    """
    ordered = sorted(values)
    reach = 0.98 * len(ordered) ** 0.5
    low = max(0, math.floor(len(ordered) / 2 - reach))
    high = min(len(ordered) - 1, math.ceil(len(ordered) / 2 + reach))
    first, median, third = statistics.quantiles(ordered, n=4)
    return {"median": median, "quartiles": [first, third], "median_within": [ordered[low], ordered[high]]}


def table(document: dict[str, Any]) -> str:
    """Return one interpreter's results as a Markdown table."""
    where = document["machine"]
    lines = [
        f"### {document['python']}, temporary files on {document['files']}\n",
        f"On {where['cpu']}, {where['cores']} cores, Linux {where['kernel']}, {where['libc']}, {where['taken'][:10]}.",
        f"Load of the machine during the measurement: {document['load'][0]:.1f} to {document['load'][1]:.1f}.\n",
        "| case | pairs | plain, per s | recorded, per s | GIL taken, per s | CPU time | wall-clock time | goal |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in document["results"]:
        goal = f"≤ {row['goal_percent']:g} %" if row["goal_percent"] else "–"
        lines.append(
            f"| {row['case']} | {row['pairs']} | {row['plain_per_s']:,.0f} | {row['recorded_per_s']:,.0f} "
            f"| {row['takes_per_s']:,.0f} | {spread(row['cpu_cost_percent'])} "
            f"| {spread(row['wall_cost_percent'])} | {goal} |"
        )
    return "\n".join(lines) + "\n"


def spread(cost: dict[str, Any]) -> str:
    """Return a median with its confidence interval and the quartiles of the pairs."""
    (low, high), (first, third) = cost["median_within"], cost["quartiles"]
    return f"{cost['median']:+.1f} % ({low:+.1f} … {high:+.1f}) [{first:+.1f} … {third:+.1f}]"


def main() -> int:
    """Measure, or render the results of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=41)
    parser.add_argument("--only", choices=CASES, action="append")
    parser.add_argument("--narrow", type=int, metavar="PAIRS", help="pairs of the cases that have a goal")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--raw", choices=CASES, metavar="CASE", help="measure one case in this process alone; as JSON")
    parser.add_argument("--render", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.render:
        print(INTRODUCTION)
        print("\n".join(table(json.loads(path.read_text())) for path in arguments.render))
        return 0
    if arguments.raw:
        print(json.dumps(alternate(arguments.raw, arguments.pairs)))
        return 0
    before = os.getloadavg()[0]
    many = arguments.narrow or arguments.pairs
    results = [measure(name, many if name in GOALS else arguments.pairs) for name in arguments.only or CASES]
    document = {
        "python": f"CPython {platform.python_version()}",
        "machine": machine.describe(sys.executable),
        "files": machine.first_line("stat", "-f", "-c", "%T", tempfile.gettempdir()),
        "window_s": WINDOW_S,
        "load": [before, os.getloadavg()[0]],
        "results": results,
    }
    text = json.dumps(document, indent=1) + "\n"
    if arguments.out:
        arguments.out.write_text(text)
    print(table(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
