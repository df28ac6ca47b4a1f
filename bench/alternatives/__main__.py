"""Measure an echo beside CPU-bound work with unsnarl and with each alternative, in alternation.

    python -m bench.alternatives [--pairs N] [--seconds S] [--free-threaded COMMAND] [--pypy COMMAND] --out FILE
    python -m bench.alternatives --render FILE > docs/results/alternatives.md

COMMAND starts another interpreter, which needs nothing but its standard library; it may have several words, as
`scripts/debian-root -- pypy3`. Without it that alternative is left out, and the page says so. The ways of a round run
one after the other, in a new random order each round, each in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from bench import machine
from bench.alternatives import page, ways
from bench.alternatives.programs.parts import SLOT_BYTES
from bench.alternatives.ways import Way
from bench.gil.echo import CLIENT
from unsnarl import enabled
from unsnarl.demo.child import Child, ChildError

PROGRAMS = Path(__file__).with_name("programs")
UNSNARL = str(Path(sysconfig.get_path("scripts"), "unsnarl"))
PAIRS, SECONDS, WARMUP_S, LIMIT_S = 9, 0.8, 0.5, 60.0
HOGS = (0, 1, 2, 4)
"""The numbers of CPU-bound threads, tasks, processes or sub-interpreters."""
STEERING = ("UNSNARL", "PYTHON")

ASKED = """
import json, platform, sys, sysconfig
arguments = str(sysconfig.get_config_var("CONFIG_ARGS"))
print(json.dumps({
    "name": platform.python_implementation(), "version": platform.python_version(),
    "optimized": "--enable-optimizations" in arguments,
    "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
}))
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SystemExit(_fail(message, "see `python -m bench.alternatives --help`"))


def _fail(what: str, hint: str) -> int:
    sys.stderr.write(f"error: {what}\nhint: {hint}\n")
    return 2


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line, taken apart."""
    parser = _Parser(
        prog="python -m bench.alternatives",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=argparse.SUPPRESS,
    )
    parser.add_argument("--pairs", type=int, default=PAIRS, metavar="N", help=f"rounds ({PAIRS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, metavar="S", help=f"a window's length ({SECONDS:g})")
    parser.add_argument(
        "--free-threaded", type=shlex.split, default=[], metavar="COMMAND", help="a CPython without a GIL"
    )
    parser.add_argument("--pypy", type=shlex.split, default=[], metavar="COMMAND", help="a PyPy")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where the runs are kept")
    parser.add_argument("--render", type=Path, metavar="FILE", help="print the page of kept runs, measure nothing")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command line and return the exit status."""
    options = parse(words)
    if options.render is not None:
        return render(options.render)
    if options.out is None:
        return _fail("--out or --render is needed", "see `python -m bench.alternatives --help`")
    if options.pairs < 1 or not 0.1 <= options.seconds <= 60:
        return _fail("--pairs takes a number from 1, --seconds from 0.1 to 60", "see `--help`")
    if enabled.is_here():
        return _fail("this environment is enabled, so stock would have unsnarl too", "run `unsnarl disable` before")
    given = {ways.HERE: [sys.executable], ways.FREE_THREADED: options.free_threaded, ways.PYPY: options.pypy}
    commands = {name: command for name, command in given.items() if command}
    try:
        document = measure(commands, options.pairs, options.seconds)
    except (OSError, ValueError, subprocess.SubprocessError, ChildError) as error:
        return _fail(f"a program cannot be run: {error}", "try its command by hand")
    options.out.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    return 0


def render(kept: Path) -> int:
    """Print the page of kept runs."""
    try:
        sys.stdout.write(page.page(json.loads(kept.read_text(encoding="utf-8"))))
    except (OSError, ValueError) as error:
        return _fail(f"cannot read {kept}: {error}", "give a file that --out has written")
    return 0


def measure(commands: dict[str, list[str]], pairs: int, seconds: float) -> dict[str, Any]:
    """Run each way in each round with each number of hogs, and return everything."""
    order, load = random.SystemRandom(), os.getloadavg()[0]
    found = {name: asked(command) for name, command in commands.items()}
    chosen = ways.had(set(commands))
    runs: list[dict[str, Any]] = []
    for pair in range(pairs):
        sys.stderr.write(f"round {pair + 1} of {pairs}\n")
        for hogs in HOGS:
            for way in order.sample(chosen, len(chosen)):
                figures = run_once(way, commands[way.interpreter], hogs, seconds)
                runs.append({"pair": pair, "hogs": hogs, "way": way.name, "figures": figures})
    return {
        "machine": machine.describe(sys.executable),
        "load": [load, os.getloadavg()[0]],
        "interpreters": found,
        "pairs": pairs,
        "seconds": seconds,
        "runs": runs,
    }


def asked(command: list[str]) -> dict[str, Any]:
    """Return which interpreter a command starts."""
    done = subprocess.run(
        [*command, "-c", ASKED], env=clean(), capture_output=True, text=True, check=True, timeout=LIMIT_S
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def clean() -> dict[str, str]:
    """Return this environment without what steers Python and unsnarl."""
    return {name: value for name, value in os.environ.items() if not name.startswith(STEERING)}


def run_once(way: Way, interpreter: list[str], hogs: int, seconds: float) -> dict[str, float]:
    """Run a way once: start its program, let a client ask it, and return the echo's figures and the work a second.

    The file of the counts is in /dev/shm, which a chroot usually shares.
    """
    start = [UNSNARL, "run"] if way.under_unsnarl else interpreter
    with tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="unsnarl-alternatives-") as counts:
        counts.truncate(max(hogs, 1) * SLOT_BYTES)
        command = [*start, str(PROGRAMS / f"{way.program}.py"), counts.name, str(hogs), *way.words]
        with Child(way.name, command, clean()) as program:
            return asked_by_a_client(int(program.receive(LIMIT_S)), Path(counts.name), seconds)


def asked_by_a_client(port: int, counts: Path, seconds: float) -> dict[str, float]:
    """Let a client ask the echo for a window, and return its figures with the work of that window."""
    command = [sys.executable, "-I", "-S", str(CLIENT), "udp", str(port)]
    command += ["--seconds", str(seconds), "--warmup", str(WARMUP_S)]
    with Child("echo client", command, clean()) as client:
        client.expect("begin", LIMIT_S)
        begin, began_s = done(counts), time.perf_counter()
        client.expect("end", LIMIT_S + seconds)
        end, ended_s = done(counts), time.perf_counter()
        figures: dict[str, float] = json.loads(client.receive(LIMIT_S))
    return figures | {"work_per_s": (end - begin) / (ended_s - began_s)}


def done(counts: Path) -> int:
    """Return the units of work that all have done so far."""
    return sum(memoryview(counts.read_bytes()).cast("Q"))


if __name__ == "__main__":
    sys.exit(main())
