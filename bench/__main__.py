"""The runner: measures cases of the plan, variants in alternation, and keeps the results as data.

    python -m bench --list
    python -m bench --only 'echo-*' --out results
    python -m bench --quick

Run it from the root of the sources, in an environment where unsnarl is installed. Each case becomes one JSON file.
Measuring a case again adds pairs to its file; if case, interpreter or scheduler have changed, the file starts again.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench import machine
from bench.plan import Case, cases
from unsnarl.demo.variant import VARIANTS

PAIRS = 5
QUICK_PAIRS, QUICK_SECONDS = 2, 1.0
HEADLINES = (
    *("requests_per_s", "work_per_s", "elapsed_s", "releasing_ns", "instructions"),
    *("hog_worst_ms",),
)
"""The figure of a run that the progress line shows: the first of these that the run has."""


def window_seconds(case: Case, arguments: argparse.Namespace) -> float | None:
    """Return the length of a case's window; None for a program without one."""
    return QUICK_SECONDS if arguments.quick and case.seconds is not None else case.seconds


def command_of(case: Case, variant: str, arguments: argparse.Namespace) -> list[str]:
    """Return the command of one run."""
    command = [arguments.python, "-m", f"bench.gil.{case.program}", *case.arguments]
    seconds = window_seconds(case, arguments)
    if seconds is not None:
        command += ["--seconds", f"{seconds:g}"]
    return [*command, "--variant", variant, "--options", json.dumps(arguments.options)]


def run_once(case: Case, variant: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Run a case once; return the figures it printed, or the reason why there are none."""
    command = command_of(case, variant, arguments)
    try:
        done = subprocess.run(
            command, cwd=machine.ROOT, capture_output=True, text=True, timeout=case.limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return {"variant": variant, "failed": f"no result within {case.limit_s:g} s"}
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["nothing on stderr"]
        return {"variant": variant, "failed": f"exit status {done.returncode}: {lines[-1]}"}
    run: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {"variant": variant, "figures": run["figures"], "gil": run["gil"]}


def headline(run: dict[str, Any]) -> str:
    """Return the figure of a run that the progress line shows."""
    if "failed" in run:
        return str(run["failed"])
    name = next(name for name in HEADLINES if name in run["figures"])
    return f"{name} {run['figures'][name]:,.4g}"


def rotated(variants: tuple[str, ...], by: int) -> tuple[str, ...]:
    """Return ``variants`` rotated, so that no variant is always first."""
    by %= len(variants)
    return variants[by:] + variants[:by]


def previous_runs(path: Path, case: dict[str, Any], description: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the runs kept for a case, if case, interpreter and scheduler are the same."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text(encoding="utf-8"))
    is_same = kept["case"] == json.loads(json.dumps(case)) and all(
        kept["machine"][name] == description[name] for name in ("python", "scheduler", "cpu")
    )
    return list(kept["runs"]) if is_same else []


def measure(case: Case, arguments: argparse.Namespace, description: dict[str, Any]) -> None:
    """Measure one case in alternation and write its file after every pair."""
    path: Path = arguments.out / f"{case.name}.json"
    what = case._asdict() | {"seconds": window_seconds(case, arguments), "options": arguments.options}
    runs = previous_runs(path, what, description)
    first = 1 + max((run["pair"] for run in runs), default=-1)
    variants = tuple(variant for variant in case.variants if variant in arguments.variants)
    for pair in range(first, first + arguments.pairs * case.repeat):
        for variant in rotated(variants, pair):
            run = {"pair": pair} | run_once(case, variant, arguments)
            runs.append(run)
            print(f"{case.name:26} pair {pair} {variant:14} {headline(run)}", file=sys.stderr)
        result = {"case": what, "machine": description, "runs": runs}
        path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print_medians(case, variants, runs)


def print_medians(case: Case, variants: tuple[str, ...], runs: list[dict[str, Any]]) -> None:
    """Print one line on stdout: the case's main figure, median per variant."""
    good = [run for run in runs if "figures" in run]
    words = [f"{case.name:26}"]
    for variant in variants:
        mine = [run["figures"] for run in good if run["variant"] == variant]
        name = next((name for name in HEADLINES if mine and name in mine[0]), None)
        median = statistics.median(figures[name] for figures in mine) if name else None
        words.append(f"{variant} {median:,.4g}" if median is not None else f"{variant} failed")
    print("  ".join(words), flush=True)


def chosen(arguments: argparse.Namespace) -> list[Case]:
    """Return the cases that match any of ``--only``."""
    every = cases()
    patterns: list[str] = arguments.only or ["*"]
    some = [case for case in every if any(fnmatch.fnmatch(case.name, p) for p in patterns)]
    if not some:
        raise SystemExit(f"error: no case matches {' '.join(patterns)}\nhint: see --list")
    return some


def parse() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", metavar="PATTERN", help="cases, as 'echo-*'; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the cases' names and end")
    parser.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    parser.add_argument("--pairs", type=int, default=None, help=f"pairs to add (default {PAIRS})")
    parser.add_argument("--quick", action="store_true", help="short windows, few pairs: to see that all works")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="the interpreter to measure")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--options", type=json.loads, default={}, metavar="JSON", help="for unsnarl.gil.install")
    arguments = parser.parse_args()
    if arguments.pairs is None:
        arguments.pairs = QUICK_PAIRS if arguments.quick else PAIRS
    return arguments


def main() -> None:
    """Measure or list the chosen cases."""
    arguments = parse()
    some = chosen(arguments)
    if arguments.list:
        print("\n".join(case.name for case in some))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    description = machine.describe(arguments.python)
    for case in some:
        measure(case, arguments, description)


if __name__ == "__main__":
    main()
