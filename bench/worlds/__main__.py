"""Measure the matrix, or a part of it, and keep the results as data.

    python -m bench.worlds --out DIR [--world NAME]... [--only PATTERN]... [--pairs N] [--list]

Measuring a case in a world again replaces what the directory has of it. From the root of the sources, in an
environment with unsnarl and its extra `bench`. The machine should do nothing else meanwhile.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from pathlib import Path
from typing import Any

from bench import machine
from bench.worlds import plan, runner
from bench.worlds.plan import Case
from bench.worlds.world import WORLDS, Unavailable, World, inhabited

PAIRS = 7


def run_once(case: Case, variant: str, prefix: list[str]) -> dict[str, Any]:
    """Return one run's figures, or why there are none."""
    try:
        return {"variant": variant, "figures": runner.run([*prefix, *case.command(variant)], case.limit_s)}
    except runner.Failed as failure:
        return {"variant": variant, "failed": str(failure)}


def futexes(case: Case, prefix: list[str]) -> dict[str, float | None]:
    """Return each variant's futex calls for each operation."""
    found: dict[str, float | None] = {}
    for variant in case.variants:
        try:
            found[variant] = runner.futexes([*prefix, *case.command(variant)], case.limit_s)
        except runner.Failed:
            found[variant] = None
    return found


def measure(case: Case, world: World, pairs: int) -> dict[str, Any]:
    """Return a case's runs in a world; the first variant changes from pair to pair."""
    runs: list[dict[str, Any]] = []
    with inhabited(world) as prefix:
        for pair in range(pairs):
            turn = pair % len(case.variants)
            order = case.variants[turn:] + case.variants[:turn]
            runs += [{"pair": pair} | run_once(case, variant, prefix) for variant in order]
        calls = futexes(case, prefix)
    return {"case": case._asdict(), "world": world._asdict(), "runs": runs, "futexes": calls}


def parse() -> argparse.Namespace:
    """Return the command line, taken apart."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.worlds", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--world", action="append", choices=[world.name for world in WORLDS])
    parser.add_argument("--only", action="append", metavar="PATTERN", help="cases, as 'logging*'; may be repeated")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    arguments = parser.parse_args()
    if arguments.out is None and not arguments.list:
        parser.error("--out DIR says where the results are kept")
    return arguments


def chosen(patterns: list[str] | None) -> list[Case]:
    """Return the cases that one of the patterns names and this environment has."""
    found: list[Case] = []
    for case in plan.cases():
        if not any(fnmatch.fnmatch(case.name, pattern) for pattern in patterns or ["*"]):
            continue
        if missing := case.missing():
            print(f"left out: {case.name}: {', '.join(missing)} is not installed", file=sys.stderr)
        else:
            found.append(case)
    return found


def main() -> None:
    """Carry out the command line."""
    arguments = parse()
    cases = chosen(arguments.only)
    if arguments.list:
        print("\n".join(case.name for case in cases))
        return
    description = machine.describe(sys.executable)
    for world in (world for world in WORLDS if arguments.world is None or world.name in arguments.world):
        path = arguments.out / f"{world.name}.json"
        kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cases": {}}
        for case in cases:
            try:
                result = measure(case, world, arguments.pairs)
            except Unavailable as reason:
                print(f"left out: {world.title}: {reason}", file=sys.stderr)
                break
            kept["cases"][case.name] = result | {"machine": description}
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
            print(f"{world.name:6} {case.name:44} {summary(case, result)}", flush=True)


def summary(case: Case, result: dict[str, Any]) -> str:
    """Return one line about a case: each variant's ratio and verdict."""
    from bench.worlds.page import judged

    return "; ".join(
        f"{variant} {found.ratio.median:.2f} {found.verdict} (A/A {found.again.median:.2f})"
        if (found := judged(result, variant, case.judged))
        else f"{variant} has no result"
        for variant in case.variants[2:]
    )


if __name__ == "__main__":
    main()
