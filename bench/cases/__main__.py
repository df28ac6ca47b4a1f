"""Run the cases that people have reported, stock twice, under `unsnarl run` and with `--patch`, in pairs.

    python -m bench.cases [--list] [--only NAME,...] [--pairs N] [--seconds S] [--out FILE] [--report PAGE]

Without --out the runs are printed as JSON. --report renders them, or, without a new measurement, the file of --out.
With --only the runs take the place of those of the same cases in the file of --out, and the others stay.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from bench import machine
from bench.cases import case, page
from bench.cases.case import Case
from unsnarl import enabled

PAIRS, SECONDS, LIMIT_S = 7, 2.0, 120.0
UNSNARL = str(Path(sysconfig.get_path("scripts"), "unsnarl"))
WAYS: dict[str, tuple[str, ...]] = {
    page.STOCK: (sys.executable,),
    page.AGAIN: (sys.executable,),
    page.RUN: (UNSNARL, "run"),
    page.PATCH: (UNSNARL, "run", "--patch"),
}
STEERING = ("UNSNARL", "PYTHON")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SystemExit(_fail(message, "see `python -m bench.cases --help`"))


def _fail(what: str, hint: str) -> int:
    sys.stderr.write(f"error: {what}\nhint: {hint}\n")
    return 2


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line, taken apart."""
    parser = _Parser(
        prog="python -m bench.cases",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=argparse.SUPPRESS,
    )
    parser.add_argument("--list", action="store_true", help="list the cases and run none")
    parser.add_argument("--only", default="", metavar="NAME,...", help="only these cases")
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"runs of each way ({PAIRS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help=f"how long one lasts ({SECONDS:g})")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the runs are kept")
    parser.add_argument("--report", type=Path, metavar="PAGE", help="render the kept runs")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command line and return the exit status."""
    options = parse(words)
    cases = case.every()
    if options.pairs < 1 or not 0.1 <= options.seconds <= 60:
        return _fail("--pairs takes a number from 1, --seconds from 0.1 to 60", "see `python -m bench.cases --help`")
    names = [name for name in options.only.split(",") if name] or [one.name for one in cases]
    unknown = sorted(set(names) - {one.name for one in cases})
    if unknown:
        return _fail(f"there is no case {unknown[0]!r}", "see `python -m bench.cases --list`")
    if options.list:
        print("\n".join(f"{one.name:<28} {one.title}" for one in cases))
        return 0
    chosen = [one for one in cases if one.name in names]
    if options.report is not None and options.out is not None and options.out.is_file() and not options.only:
        document = json.loads(options.out.read_text(encoding="utf-8"))
    elif enabled.is_here():
        return _fail("this environment is enabled, so stock would have unsnarl too", "run `unsnarl disable` before")
    else:
        document = measure(chosen, options.pairs, options.seconds)
        if options.only and options.out is not None and options.out.is_file():
            document = added(json.loads(options.out.read_text(encoding="utf-8")), document)
        _keep(document, options.out)
    if options.report is not None:
        options.report.write_text(page.page(document, cases), encoding="utf-8")
    return 0


def added(kept: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return kept runs with those of cases that were measured later, and the load of that time."""
    later = dict.fromkeys(new["runs"], new["machine"]["load"])
    return kept | {"runs": kept["runs"] | new["runs"], "later": kept.get("later", {}) | later}


def _keep(document: dict[str, Any], out: Path | None) -> None:
    text = json.dumps(document, indent=1) + "\n"
    if out is None:
        print(text, end="")
    else:
        out.write_text(text, encoding="utf-8")


def measure(cases: Sequence[Case], pairs: int, seconds: float) -> dict[str, Any]:
    """Run each case in each way, in random order within a pair, and return everything.

    Raises:
        subprocess.CalledProcessError, subprocess.TimeoutExpired: a program failed.
    """
    # A shell that starts this in the background ignores SIGINT; a program that interrupts itself would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    order = random.SystemRandom()
    runs: dict[str, list[dict[str, Any]]] = {}
    load = os.getloadavg()[0]
    for one in cases:
        sys.stderr.write(f"{one.name}\n")
        runs[one.name] = []
        for _ in range(pairs):
            ways = list(WAYS)
            order.shuffle(ways)
            runs[one.name].append({way: run_once(one, way, seconds) for way in ways})
    return {
        "python": platform.python_version(),
        "pairs": pairs,
        "seconds": seconds,
        "unsnarl": machine.sources(),
        "machine": {"processors": len(os.sched_getaffinity(0)), "load": load, "system": platform.platform()},
        "runs": runs,
    }


def run_once(one: Case, way: str, seconds: float) -> dict[str, float]:
    """Run a program once and return its figures.

    Raises:
        subprocess.CalledProcessError, subprocess.TimeoutExpired: it failed.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}
    command = [*WAYS[way], str(one.path), str(seconds)]
    done = subprocess.run(command, env=kept, check=True, stdout=subprocess.PIPE, text=True, timeout=LIMIT_S)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    sys.exit(main())
