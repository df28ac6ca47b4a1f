"""Doctor's verdicts on stock against stock: how many are false.

    python -m bench.doctor [--world idle busy one …] [--seconds S] --out FILE
    python -m bench.doctor --render FILE > docs/results/doctor.md

Worlds that FILE has already, and that are not measured again, stay.

Each program is run plainly in pairs, the order of a pair by chance. The pairs are judged as doctor judges a way: after
each pair, until there is a verdict, or the most runs are made, or the time is spent; then the next examination begins.
As both sides are the same, "faster" and "slower" are false. Programs in which a thread waits for the GIL are also
traced in such pairs, and "the scheduler helps this thread" is false too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench import machine
from bench.markdown import table
from bench.worlds.runner import environment
from bench.worlds.world import WORLDS, World, inhabited
from unsnarl.cli.doctor import RUNS
from unsnarl.doctor import comparison, traced, trial
from unsnarl.doctor.diagnosis import FEWEST_RUNS, effect_of, mean_wait, threads_that_wait
from unsnarl.statistics import ERROR
from unsnarl.trace import report

PROGRAMS = (
    *("full_gil", "convoy", "producer_and_consumer", "short_requests", "children", "single_loop"),
    *("lock_across_io_2", "short_sleeps_with_a_lock", "tasks_without_a_fault", "many_logging_threads"),
)
"""Of the tracer's corpus, tests/causes: threads that compute, wait, share a lock or the GIL; tasks; children."""
WAYS = 3
"""Ways that doctor compares with stock at once, among which it divides its error: scheduler, primitives, pack."""
LIMIT_S = 120.0
TRACED_SHARE = 0.5
"""Time for traced pairs, as a share of that for the timed ones."""
EARLY = 4
"""Pairs after which the difference of the medians is shown, for comparison: a verdict that looks at nothing else."""

Pairs = list[tuple[float, float]]


def program(name: str) -> Path:
    """Return the path of a program of the corpus."""
    return machine.ROOT / "tests" / "causes" / f"{name}.py"


def pairs_for(seconds: float, one: Callable[[], Any]) -> list[Any]:
    """Call a function twice in each pair until the time is spent; return the pairs, the order decided by chance."""
    made: list[Any] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pair = [one(), one()]
        random.SystemRandom().shuffle(pair)
        made.append(tuple(pair))
    return made


def timed(prefix: Sequence[str], name: str, seconds: float) -> Pairs:
    """Return the wall times of pairs of plain runs, in seconds."""
    command = [*prefix, sys.executable, str(program(name))]

    def one() -> float:
        made = trial.run_command(command, environment(), LIMIT_S)
        if made.status or made.timed_out:
            raise SystemExit(f"error: {name} {comparison.ending(made)}\nhint: {made.complaint.strip()[-200:]}")
        return made.wall_s

    return pairs_for(seconds, one)


def waits(name: str, seconds: float) -> dict[str, Pairs]:
    """Return the mean waits for the GIL in pairs of traced stock runs, by the threads that findings name."""
    words = [str(program(name))]

    def one() -> Any:
        return traced.run(words, environment(), LIMIT_S, scheduler=False)

    threads = threads_that_wait(report.make(one()).findings)
    both = pairs_for(seconds, one) if threads else []
    result: dict[str, Pairs] = {}
    for thread in threads:
        means = [(mean_wait(before, thread), mean_wait(after, thread)) for before, after in both]
        result[thread] = [(one, other) for one, other in means if one is not None and other is not None]
    return result


def measure(worlds: Sequence[World], programs: Sequence[str], seconds: float) -> dict[str, Any]:
    """Return the pairs of all programs in all worlds, with a description of the machine."""
    document: dict[str, Any] = {"machine": machine.describe(sys.executable), "worlds": {}}
    for world in worlds:
        before = os.getloadavg()[0]
        with inhabited(world) as prefix:
            of_world: dict[str, Any] = {}
            for name in programs:
                # A traced run enters no world of its own: it is judged next to the same busy processes.
                traced_pairs = {} if world.processors else waits(name, seconds * TRACED_SHARE)
                of_world[name] = {"timed": timed(prefix, name, seconds), "waits": traced_pairs}
                print(f"{world.name}: {name}: {dict(verdicts(of_world[name]['timed']))}", file=sys.stderr)
        document["worlds"][world.name] = {"load": before, "programs": of_world}
    return document


def verdicts(pairs: Pairs) -> Counter[str]:
    """Count the verdicts of examinations that follow one another; the last may end as the time is spent."""
    return _examined(pairs, lambda some: comparison.verdict(some, WAYS), comparison.TOO_FEW)


def effects(pairs: Pairs) -> Counter[str]:
    """Count the verdicts on the effect on one thread."""
    words = {None: comparison.TOO_FEW, True: "helps", False: comparison.SAME}
    return _examined(pairs, lambda some: words[effect_of("", some, 1).helps], comparison.TOO_FEW)


def early(pairs: Pairs) -> tuple[int, int]:
    """Return how often the medians of a few pairs differ by more than doctor's least difference, and of how many."""
    groups = [pairs[at : at + EARLY] for at in range(0, len(pairs) - EARLY + 1, EARLY)]
    medians = [[sorted(side)[EARLY // 2] for side in zip(*group, strict=True)] for group in groups]
    return sum(abs(one / other - 1) > comparison.LEAST for one, other in medians), len(groups)


def _examined(pairs: Pairs, judge: Callable[[Pairs], str], too_few: str) -> Counter[str]:
    found, some = Counter[str](), Pairs()
    for pair in pairs:
        some.append(pair)
        said = judge(some)
        if said != too_few or len(some) == RUNS:
            found[said] += 1
            some = []
    if len(some) >= FEWEST_RUNS:
        found[too_few] += 1
    return found


def rendered(document: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    titles = {world.name: world.title for world in WORLDS}
    of = document["machine"]
    on = f"On {of['cpu']}, {of['cores']} cores, Linux {of['kernel']}, CPython {of['python']['version']}, "
    text = [f"{on}{of['taken'][:10]}, sources {of['commit']}.\n"]
    for name, world in document["worlds"].items():
        rows = [_row(program, [each]) for program, each in world["programs"].items()]
        rows.append(_row("all", list(world["programs"].values())))
        text.append(f"## {titles[name].capitalize()}\n\nLoad of the machine before: {world['load']:.1f}.\n")
        text.append(table(HEAD, rows))
    return "\n".join(text)


HEAD = (
    "program",
    "pairs",
    "examinations",
    "same",
    "too few to judge",
    "**false**",
    f"medians of {EARLY} pairs differ by > {comparison.LEAST:.0%}",
    "verdicts on threads",
    "**false**",
)


def _row(name: str, programs: list[dict[str, Any]]) -> tuple[str, ...]:
    found, on_threads = Counter[str](), Counter[str]()
    apart, groups = 0, 0
    for each in programs:
        found += verdicts([tuple(pair) for pair in each["timed"]])
        for pairs in each["waits"].values():
            on_threads += effects([tuple(pair) for pair in pairs])
        more, of_these = early(each["timed"])
        apart, groups = apart + more, groups + of_these
    false = found[comparison.FASTER] + found[comparison.SLOWER]
    return (
        name,
        str(sum(len(each["timed"]) for each in programs)),
        str(found.total()),
        str(found[comparison.SAME]),
        str(found[comparison.TOO_FEW]),
        str(false),
        f"{apart} of {groups}",
        str(on_threads.total()) if on_threads else "–",
        str(on_threads["helps"]) if on_threads else "–",
    )


INTRODUCTION = f"""# Doctor's verdicts on stock against stock

Rendered from `bench/results/doctor-*.json`, written by `python -m bench.doctor`, which says how it measures. Both sides
of each pair are the same plain program, so each "faster", "slower" or "helps" is false: doctor states that at most
{ERROR:.0%} of examinations contain one. A verdict needs pairs that agree; an examination ends without one
after {RUNS} pairs, or when its time is spent.
"""


def main() -> int:
    """Measure, or render the results of a file."""
    names = [world.name for world in WORLDS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", nargs="+", choices=names, default=["idle", "busy"])
    parser.add_argument("--program", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--seconds", type=float, default=60.0, help="for the timed pairs of a program in a world")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--render", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.render:
        print(INTRODUCTION)
        print(rendered(json.loads(arguments.render.read_text())), end="")
        return 0
    worlds = [world for world in WORLDS if world.name in arguments.world]
    out = arguments.out and arguments.out.resolve()
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):  # a program's files do not stay
        document = measure(worlds, arguments.program, arguments.seconds)
    if out and out.exists():
        document["worlds"] = json.loads(out.read_text())["worlds"] | document["worlds"]
    text = json.dumps(document, separators=(",", ":")) + "\n"
    if out:
        out.write_text(text)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
