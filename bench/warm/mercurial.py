"""Mercurial's own tests, with hg plain and through a warm shim: passed tests, wall time, processor time.

    python -m bench.warm.mercurial --source mercurial-7.2.4 --bin VENV/bin --piece 1/12 --house DIR --out FILE
    python -m bench.warm.mercurial --render FILE > docs/results/warm-mercurial.md

``source`` is an unpacked release; ``VENV`` has mercurial of that version and unsnarl. The tests are run in pieces, with
one test run per variant of a piece; results of other pieces in ``--out`` are kept. ``--house`` is the runtime directory
of the servers. The servers learn during the runs; with ``--house`` they stay for the next piece (end them with
``unsnarl warm stop``). Processor time is that of the whole machine, so no other load may run; with ``--outcomes`` it
may, and no times are recorded. Nothing else is set: learning finds that ``HGTEST_UUIDFILE``, which differs from test to
test, is only copied.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = """abort-checkin add addremove alias annotate backout bookmarks branches cat commit-amend copy diff-color
diff-unified encoding excessive-merge filebranch flags globalopts grep hgignore identify import-merge init
issue1175 issue322 issue586 journal-exists locate log-linerange merge-default merge-remove merge-revert merge1
merge10 merge2 merge5 mv-cp-st-diff newbranch parents push-warn rename revert-flags simple-update
status-color tag up-local-change update-names"""

GOALS = {"wall_s": 0.26, "busy_s": 0.30}
"""Goals: the largest ratios to plain."""

OF_CHG = 0.65
"""Goal: the largest ratio of warm's time to that with chg."""

Outcome = dict[str, Any]


def busy_s() -> float:
    """Return the busy time of all processors since boot, in seconds."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, words[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def run(source: Path, hg: list[str], tests: list[str], jobs: int, environ: dict[str, str]) -> Outcome:
    """Run the tests once and return their outcomes and times."""
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-", ignore_cleanup_errors=True) as out:
        argv = [sys.executable, "run-tests.py", f"-j{jobs}", "--json", f"--outputdir={out}", *hg, *tests]
        begin_s, begin_busy_s = time.perf_counter(), busy_s()
        said = subprocess.run(
            argv,
            cwd=source / "tests",
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        ).stdout
        times = {"wall_s": time.perf_counter() - begin_s, "busy_s": busy_s() - begin_busy_s}
        try:
            report = json.loads(Path(out, "report.json").read_text().removeprefix("testreport ="))
        except (OSError, ValueError):
            raise RuntimeError(f"run-tests.py left no report: {said[-500:]}") from None
    return {**times, "results": {test: one["result"] for test, one in sorted(report.items())}}


def chosen(source: Path, piece: str, named: list[str]) -> list[str]:
    """Return the tests of a piece, ``K/N``: every N-th, from the K-th."""
    tests = named or [f"test-{name}.t" for name in TESTS.split()]
    number, _, count = piece.partition("/")
    return [test for test in tests[int(number) - 1 :: int(count)] if (source / "tests" / test).exists()]


def measure(arguments: argparse.Namespace) -> Outcome:
    """Run one piece in all variants."""
    programs = arguments.bin.absolute()
    tests = chosen(arguments.source, arguments.piece, arguments.tests)
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-") as scratch:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "UNSNARL"))}
        environ |= {"UNSNARL_WARM_DIR": str(arguments.house or f"{scratch}/runtime"), "XDG_DATA_HOME": scratch}
        environ |= {"PATH": f"{programs}:{environ['PATH']}"}
        enable = [programs / "unsnarl", "warm", "enable", programs / "hg"]
        subprocess.run(enable, env=environ, check=True, stdout=subprocess.DEVNULL)
        lines = {"plain": [f"--with-hg={programs / 'hg'}"], "warm": [f"--with-hg={scratch}/unsnarl/shims/hg"]}
        if arguments.chg:
            lines["chg"] = [f"--with-hg={programs / 'hg'}", "--chg", f"--with-chg={arguments.chg}"]
        found = {name: run(arguments.source, hg, tests, arguments.jobs, environ) for name, hg in lines.items()}
        if arguments.outcomes:
            found = {name: {"results": outcome["results"]} for name, outcome in found.items()}
        if not arguments.house:
            subprocess.run([programs / "unsnarl", "warm", "stop"], env=environ, check=False)
    where = {"python": sys.version.split()[0], "machine": platform.platform(), "cpus": os.cpu_count()}
    return {"where": where | {"source": arguments.source.name, "jobs": arguments.jobs}, **found}


def render(pieces: dict[str, Outcome]) -> str:
    """Return the results of all pieces as a page."""
    where = next(iter(pieces.values()))["where"]
    timed = {name: piece for name, piece in pieces.items() if "wall_s" in piece["plain"]}
    machine = f"{where['machine']}, {where['cpus']} processors"
    rows = [
        "# Mercurial's own tests",
        "",
        f"{where['source']} on CPython {where['python']}, {machine}, `run-tests.py -j{where['jobs']}`.",
        "How it is measured: the head of `bench/warm/mercurial.py`, which has written this page.",
        f"Pieces: {len(pieces)}; times are sums over {len(timed)} of them, with {len(merged('plain', timed))} tests.",
        "",
        "| hg | tests passed | failed | skipped | wall s | of plain | processors s | of plain |",
        "|---|---|---|---|---|---|---|---|",
    ]
    variants = [name for name in ("plain", "warm", "chg") if all(name in piece for piece in pieces.values())]
    rows += [row(name, pieces, timed) for name in variants]
    results = {name: merged(name, pieces) for name in variants}
    broken = [
        test for test, result in results["plain"].items() if result == "success" != results["warm"].get(test, "missing")
    ]
    rows += ["", f"Pass plainly and not warm: {', '.join(broken) or 'none'}.", ""]
    if timed:
        goals = [goal(what, "plain", GOALS[what], timed) for what in GOALS]
        goals += [goal(what, "chg", OF_CHG, timed) for what in GOALS if "chg" in variants]
        rows.append("Goals: " + "; ".join(goals) + ".")
    rows += ["", f"The tests: {', '.join(sorted(results['plain']))}."]
    return "\n".join(rows) + "\n"


def merged(variant: str, pieces: dict[str, Outcome]) -> dict[str, str]:
    """Return the result of every test in a variant."""
    return {test: result for piece in pieces.values() for test, result in piece[variant]["results"].items()}


def total(variant: str, what: str, pieces: dict[str, Outcome]) -> float:
    """Return a time of a variant, summed over the pieces."""
    return sum(float(piece[variant][what]) for piece in pieces.values())


def row(variant: str, pieces: dict[str, Outcome], timed: dict[str, Outcome]) -> str:
    """Return the table row of one variant."""
    results = list(merged(variant, pieces).values())
    cells = [variant, *(str(results.count(result)) for result in ("success", "failure", "skip"))]
    for what in GOALS if timed else ():
        seconds = total(variant, what, timed)
        cells += [f"{seconds:.1f}", f"{seconds / total('plain', what, timed):.3f}"]
    return f"| {' | '.join(cells)} |"


def goal(what: str, other: str, largest: float, pieces: dict[str, Outcome]) -> str:
    """Return a goal for the ratio of warm to another variant, and whether it was met."""
    ratio = total("warm", what, pieces) / total(other, what, pieces)
    name = {"wall_s": "wall", "busy_s": "processors"}[what]
    return f"{name} ≤ {largest:.2f} of {other}, {ratio:.3f}, {'met' if ratio <= largest else 'missed'}"


def main() -> None:
    """Run a piece and add it to the results, or render them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path)
    parser.add_argument("--bin", type=Path)
    parser.add_argument("--chg", type=Path)
    parser.add_argument("--house", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--render", type=Path)
    parser.add_argument("--outcomes", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--piece", default="1/1")
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    if arguments.render:
        sys.stdout.write(render(json.loads(arguments.render.read_text())))
        return
    if not (arguments.source and arguments.bin and arguments.out):
        parser.error("--source, --bin and --out are needed, or --render")
    pieces: dict[str, Outcome] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    piece = measure(arguments)
    pieces[next(iter(piece["plain"]["results"]), arguments.piece)] = piece
    arguments.out.write_text(json.dumps(pieces, indent=1) + "\n")
    sys.stdout.write(render(pieces))


if __name__ == "__main__":
    main()
