"""Time the square programs with processes: ours and multiprocessing's.

    python -m bench.ipc_squares [-n 40 120 360] [--one-core] [--round-robin] [-o RESULTS.json]

`start`: start n processes, each running on until all have run; ours behind a starting gate.
`mutex`: pass one lock through n processes, each running on afterwards. Prints seconds per number
of processes and the growth exponent: the slope of log(time) over log(processes).
Invariant: each run is a process of its own, with a limit.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from typing import Any

from unsnarl import ipc

LIMIT_S = 60


def start(library: str, n: int) -> float:
    """Start n processes that run on until all are started; seconds."""
    context: Any = multiprocessing.get_context("fork")
    started = context.Array("b", n, lock=False)

    def work(number: int) -> None:
        started[number] = True
        while not all(started):
            time.sleep(0)

    processes = [context.Process(target=work, args=(number,), daemon=True) for number in range(n)]
    began = time.perf_counter()
    if library == "unsnarl":
        ipc.start_together(processes)
    else:
        for process in processes:
            process.start()
    for process in processes:
        process.join()
    return time.perf_counter() - began


def mutex(library: str, n: int) -> float:
    """Pass one lock through n waiting processes, each running on afterwards; seconds."""
    context: Any = ipc.get_context("fork") if library == "unsnarl" else multiprocessing.get_context("fork")
    lock = context.Lock()
    waiting, done = context.RawArray("b", n), context.RawArray("b", n)
    began = context.RawValue("d")

    def work(number: int) -> None:
        waiting[number] = True
        with lock:
            if not began.value:
                while not all(waiting):
                    time.sleep(0)
                began.value = time.perf_counter()
        done[number] = True
        while not all(done):
            time.sleep(0)

    processes = [context.Process(target=work, args=(number,), daemon=True) for number in range(n)]
    ipc.start_together(processes)
    for process in processes:
        process.join()
    return time.perf_counter() - float(began.value)


PROGRAMS = {"start": start, "mutex": mutex}


def slope(times: dict[int, float]) -> float:
    """Return the growth exponent."""
    points = [(math.log(n), math.log(elapsed)) for n, elapsed in times.items()]
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


def _arrange(one_core: bool, round_robin: bool) -> None:
    if one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if round_robin:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def _measured(program: str, library: str, n: int, options: list[str]) -> float | None:
    command = [sys.executable, "-m", "bench.ipc_squares", "--once", program, library, "-n", str(n), *options]
    try:
        output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout
    except subprocess.SubprocessError:
        return None
    return float(output)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", nargs="+", type=int, default=[40, 120, 360])
    parser.add_argument("--once", nargs=2, metavar=("PROGRAM", "LIBRARY"))
    parser.add_argument("--one-core", action="store_true")
    parser.add_argument("--round-robin", action="store_true", help="SCHED_RR, where that is allowed")
    parser.add_argument("-o", "--output", help="write the results as JSON")
    arguments = parser.parse_args()
    options = [f"--{name.replace('_', '-')}" for name in ("one_core", "round_robin") if getattr(arguments, name)]
    if arguments.once:
        _arrange(arguments.one_core, arguments.round_robin)
        print(PROGRAMS[arguments.once[0]](arguments.once[1], arguments.n[0]), flush=True)
        return
    results: dict[str, Any] = {}
    for program in PROGRAMS:
        for library in ("multiprocessing", "unsnarl"):
            measured = {n: _measured(program, library, n, options) for n in arguments.n}
            times = {n: elapsed for n, elapsed in measured.items() if elapsed is not None}
            results[f"{program} {library}"] = measured
            cells = " ".join(f"n={n}: {elapsed:.3f} s" for n, elapsed in times.items())
            exponent = f"{slope(times):.2f}" if len(times) > 1 else "unknown"
            print(f"{program:6} {library:16} {cells}  exponent {exponent}", flush=True)
    if arguments.output:
        with open(arguments.output, "w") as file:
            about = {"python": platform.python_version(), "options": options}
            json.dump({**about, "seconds": results}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
