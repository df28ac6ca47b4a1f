"""The cost of the scheduler without contention, in one thread.

``release``: time of a call that releases the GIL and acquires it again around a short system call. ``os.lseek`` does
so: ``os_lseek_impl`` in CPython's Modules/posixmodule.c wraps it in Py_BEGIN_ALLOW_THREADS in every version.
``os.getppid`` makes a system call of the same kind and keeps the GIL, so the difference of the two is about the cost of
one release and acquire. With ``--threaded`` the process has had a second thread before. After its first thread, a
process with glibc uses atomic instructions for its locks, some 20 ns for each release and acquire; installing the
scheduler starts a thread, which a single-threaded program would not.

``program``: a single-threaded program (files, JSON, regular expressions, locks, a queue). It is measured by its elapsed
time or, with ``--instructions``, by the instructions it executes, which valgrind's callgrind counts without noise. A
count is the difference between many rounds and none, so that it excludes start-up; start-up with the installation is
given separately.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import timeit
from pathlib import Path
from typing import Any

from bench import run

CALLS = 20_000
"""Calls per sample of ``release``: a few milliseconds."""
SAMPLES = 60
ROUNDS = 300
"""Rounds of ``program``: some hundred million instructions."""


def release_figures(*, threaded: bool) -> dict[str, float]:
    """Return the fastest sample of a call that releases the GIL and of one that does not."""
    if threaded:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()
    with tempfile.TemporaryFile() as file:
        fd = file.fileno()
        releasing = timeit.repeat(
            "lseek(fd, 0, 0)", globals={"lseek": os.lseek, "fd": fd}, number=CALLS, repeat=SAMPLES
        )
    keeping = timeit.repeat("getppid()", globals={"getppid": os.getppid}, number=CALLS, repeat=SAMPLES)
    releasing_ns, keeping_ns = (min(times) / CALLS * 1e9 for times in (releasing, keeping))
    return {
        "releasing_ns": releasing_ns,
        "keeping_ns": keeping_ns,
        "release_acquire_ns": releasing_ns - keeping_ns,
    }


def one_round(path: Path, lock: threading.Lock, items: queue.Queue[int]) -> int:
    """Do a little of what single-threaded programs do; return a number that depends on the work."""
    rows = [{"name": f"row {i}", "value": i * i} for i in range(60)]
    path.write_text(json.dumps(rows), encoding="utf-8")
    again: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    names = re.findall(r"row \d*7", " ".join(row["name"] for row in again))
    with lock:
        items.put(len(names))
    again.sort(key=lambda row: -int(row["value"]))
    return items.get() + int(again[0]["value"])


def run_program(rounds: int) -> float:
    """Run ``rounds`` rounds; return seconds."""
    lock, items = threading.Lock(), queue.Queue[int]()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        began_s = time.perf_counter()
        for _ in range(rounds):
            one_round(path, lock, items)
        return time.perf_counter() - began_s


def count_instructions(arguments: argparse.Namespace, rounds: int) -> int:
    """Run the program under callgrind in a new process; return instructions executed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        command = [
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--quiet"),
            *(sys.executable, "-m", "bench.gil.overhead", "--measure", "program"),
            *("--rounds", str(rounds), "--variant", arguments.variant),
            *("--options", json.dumps(arguments.options)),
        ]
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
        total = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
    if total is None:
        raise SystemExit("error: callgrind wrote no total")
    return int(total[1])


def program_figures(arguments: argparse.Namespace) -> dict[str, float]:
    """Return the program's elapsed time, or its instructions."""
    if not arguments.instructions:
        return {"elapsed_s": run_program(arguments.rounds)}
    if shutil.which("valgrind") is None:
        raise SystemExit("error: valgrind is not installed\nhint: leave out --instructions")
    startup = count_instructions(arguments, 0)
    return {
        "instructions": count_instructions(arguments, arguments.rounds) - startup,
        "startup_instructions": startup,
    }


def main() -> None:
    """Measure once and print."""
    parser = run.parser(__doc__ or "")
    parser.add_argument("--measure", choices=("release", "program"), default="release")
    parser.add_argument("--threaded", action="store_true", help="after a thread has been started")
    parser.add_argument("--instructions", action="store_true", help="count with callgrind")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    arguments = parser.parse_args()
    if arguments.instructions:
        figures = program_figures(arguments)
    else:
        run.begin(arguments)
        measure_release = arguments.measure == "release"
        figures = release_figures(threaded=arguments.threaded) if measure_release else program_figures(arguments)
    names = ("measure", "threaded", "instructions")
    parameters = {name: getattr(arguments, name) for name in names}
    run.print_line("overhead", arguments, parameters, figures)


if __name__ == "__main__":
    main()
