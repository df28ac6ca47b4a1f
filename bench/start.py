"""What `unsnarl run` costs a program that starts: processor time and private memory.

    python -m bench.start [--bin VENV/bin] [--pairs N] --out FILE
    python -m bench.start --render FILE... > docs/results/start.md

Each program is run by four ways in turn, and the first of a round changes: python, python again (the noise), `unsnarl
run`, and a child of a program under `unsnarl run`. Processor time is user and system time of the whole process, the
native command included, as the kernel accounts it. Private memory is what no other process shares, at the end of the
program. Ratios and differences are formed within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from bench import machine
from bench.markdown import table
from unsnarl.statistics import Ratio, ratio_of

STOCK, AGAIN, RUN, CHILD = "python", "python again", "unsnarl run", "a child"
WAYS = (STOCK, AGAIN, RUN, CHILD)
PAIRS, MEMORY_ROUNDS = 200, 7
VARIABLE = "UNSNARL_RUN"

_ONE_THREAD = "import threading; t = threading.Thread(target=int); t.start(); t.join()"
_MANY_ENDED = "import threading\nfor _ in range(20_000): t = threading.Thread(target=int); t.start(); t.join()"
_AT_ONCE = """\
import threading
ready = threading.Barrier(201)
threads = [threading.Thread(target=ready.wait) for _ in range(200)]
for t in threads: t.start()
ready.wait()
for t in threads: t.join()"""

PROGRAMS = {"no thread": "pass", "one thread": _ONE_THREAD}
"""Whose processor time is measured."""

MEMORY_PROGRAMS = PROGRAMS | {"20,000 threads, one after the other": _MANY_ENDED, "200 threads at once": _AT_ONCE}
"""Whose private memory is measured."""

_PRIVATE = """
with open("/proc/self/smaps_rollup") as file:
    rows = dict(line.split(":", 1) for line in file.read().splitlines()[1:])
print(*(int(rows[name].split()[0]) for name in ("Private_Dirty", "Private_Clean")))
"""

TIME_GOALS = {("no thread", RUN): 1.10, ("no thread", CHILD): 1.05}
"""The greatest ratio to python's processor time."""

MEMORY_GOAL_KIB = 2048
"""The greatest difference in private memory to python's."""


class Way(NamedTuple):
    """How to run a program: the words before ``-c``, and the environment."""

    words: list[str]
    environment: dict[str, str]


def ways(scripts: Path) -> dict[str, Way]:
    """Return every way; a child's environment is the one that `unsnarl run` gives a program."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "UNSNARL"))}
    python, command = [str(scripts / "python")], [str(scripts / "unsnarl"), "run"]
    show = ["-c", f"import os; print(os.environ['{VARIABLE}'])"]
    settings = subprocess.run([*command, *show], env=clean, capture_output=True, text=True, check=True).stdout.strip()
    return {
        STOCK: Way(python, clean),
        AGAIN: Way(python, clean),
        RUN: Way(command, clean),
        CHILD: Way(python, clean | {VARIABLE: settings}),
    }


def cpu_ms(way: Way, program: str) -> float:
    """Run a program; return its processor time."""
    words = [*way.words, "-c", program]
    _, status, usage = os.wait4(os.posix_spawn(words[0], words, way.environment), 0)
    if status:
        raise SystemExit(f"error: {words} ended with {status}\nhint: run it by hand")
    return (usage.ru_utime + usage.ru_stime) * 1e3


def private_kib(way: Way, program: str) -> dict[str, int]:
    """Run a program; return its private memory, dirty and clean."""
    words = [*way.words, "-c", program + _PRIVATE]
    done = subprocess.run(words, env=way.environment, capture_output=True, text=True, check=True)
    dirty, clean = map(int, done.stdout.split())
    return {"dirty_kib": dirty, "clean_kib": clean}


def in_turn(rounds: int) -> list[tuple[str, ...]]:
    """Return the order of the ways in each round."""
    return [WAYS[number % len(WAYS) :] + WAYS[: number % len(WAYS)] for number in range(rounds)]


def measure(scripts: Path, rounds: int) -> dict[str, Any]:
    """Return all runs, with a description of the machine."""
    before, found = os.getloadavg()[0], ways(scripts)
    for way in found.values():  # writes bytecode, fills the page cache
        cpu_ms(way, _ONE_THREAD)
    times = {
        name: [{way: cpu_ms(found[way], program) for way in order} for order in in_turn(rounds)]
        for name, program in PROGRAMS.items()
    }
    memory = {
        name: [{way: private_kib(found[way], program) for way in order} for order in in_turn(MEMORY_ROUNDS)]
        for name, program in MEMORY_PROGRAMS.items()
    }
    return {
        "machine": machine.describe(str(scripts / "python")),
        "load": [before, os.getloadavg()[0]],
        "cpu_ms": times,
        "private": memory,
    }


def verdict(goal: float | None, ratio: Ratio) -> str:
    """Return what the interval of a ratio says about a goal."""
    if goal is None:
        return "–"
    state = "met" if ratio.high <= goal else "**missed**" if ratio.low > goal else "within the noise"
    return f"≤ {goal:.2f}: {state}"


def time_rows(document: dict[str, Any]) -> list[list[str]]:
    """Return the rows about processor time."""
    rows: list[list[str]] = []
    for name, runs in document["cpu_ms"].items():
        for way in WAYS[1:]:
            ratio = ratio_of([(run[STOCK], run[way]) for run in runs])
            if ratio is None:
                continue
            stock, mine = (statistics.median(run[one] for run in runs) for one in (STOCK, way))
            rows.append(
                [
                    f"{name}: {way}",
                    f"{stock:.2f} → {mine:.2f}",
                    f"{ratio.median:.3f} ({ratio.low:.3f} to {ratio.high:.3f})",
                    verdict(TIME_GOALS.get((name, way)), ratio),
                ]
            )
    return rows


def memory_rows(document: dict[str, Any]) -> list[list[str]]:
    """Return the rows about memory: medians of python's, and of the differences within a round."""
    rows: list[list[str]] = []
    for name, runs in document["private"].items():
        for way in WAYS[1:]:
            more = {
                kind: statistics.median(run[way][kind] - run[STOCK][kind] for run in runs)
                for kind in ("dirty_kib", "clean_kib")
            }
            stock = statistics.median(sum(run[STOCK].values()) for run in runs)
            whole = statistics.median(sum(run[way].values()) - sum(run[STOCK].values()) for run in runs)
            state = "–" if way == AGAIN else "met" if whole <= MEMORY_GOAL_KIB else "**missed**"
            cells = (stock, whole, more["dirty_kib"], more["clean_kib"])
            rows.append([f"{name}: {way}", *(f"{cell:,.0f}" for cell in cells), state])
    return rows


INTRODUCTION = """\
# The start of `unsnarl run`

Rendered from `bench/results/start-*.json`, written by `python -m bench.start`, which says what is run. A ratio is the
median over rounds, followed by its 95 % confidence interval. The scheduler is installed before a program's first
thread, so a program with one pays for that. Private clean memory is what the kernel has read from a file that no other
process maps at the moment; a second process with unsnarl shares it.
"""


def where(document: dict[str, Any]) -> str:
    """Return the heading of one measurement, with the machine."""
    machine_, rounds = document["machine"], len(next(iter(document["cpu_ms"].values())))
    before, after = document["load"]
    return (
        f"## CPython {machine_['python']['version']}\n\n"
        f"On {machine_['cpu']}, {machine_['cores']} cores, Linux {machine_['kernel']}, {machine_['libc']}, "
        f"{machine_['taken'][:10]}, commit {machine_['commit']}. {rounds} rounds. "
        f"Load of the machine: {before:.1f} before, {after:.1f} after.\n"
    )


def page(documents: list[dict[str, Any]]) -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for document in documents:
        parts += [
            where(document),
            table(("processor time", "ms", "ratio to python", "goal"), time_rows(document)),
            table(
                ("private memory, KiB", "python", "more", "of it dirty", "of it clean", f"goal: ≤ {MEMORY_GOAL_KIB:,}"),
                memory_rows(document),
            ),
        ]
    return "\n".join(parts)


def main() -> int:
    """Measure, or render the results of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path(sys.executable).parent, help="an environment with unsnarl")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--render", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.render:
        print(page([json.loads(path.read_text(encoding="utf-8")) for path in arguments.render]), end="")
        return 0
    document = measure(arguments.bin, arguments.pairs)
    if arguments.out:
        arguments.out.write_text(json.dumps(document) + "\n", encoding="utf-8")
    print(page([document]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
