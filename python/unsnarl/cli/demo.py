"""``unsnarl demo``: parses the command line, checks its arguments before the measurement, and prints.

``unsnarl.demo`` implements the measurement, the table and the picture. It is imported when the verb
runs, since it imports rich.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from unsnarl import enablement
from unsnarl.cli.failure import CommandError
from unsnarl.cli.result import show
from unsnarl.run_settings import is_switched_off

if TYPE_CHECKING:
    from unsnarl.demo.measurement import Plan

CONNECTIONS = (1, 10, 50)
SECONDS, QUICK_SECONDS = 20.0, 8.0
SECONDS_RANGE = (2.0, 3600.0)
PAIRS = 5
"""The fewest pairs that are judged: ``statistics.FEWEST_PAIRS``, which this module does not load for the help text."""
HOGS = 4
HOGS_LIMIT = 64
WARMUP_S = 0.1
"""The least seconds of load before a window; the load continues until every connection was answered."""
PICTURE = "unsnarl-demo.svg"

_DESCRIPTION = """\
Start a real threaded web server with CPU-bound threads in the same process,
load it over loopback from another process with 1, 10 and 50 kept-alive
connections, stock and unsnarl in turn, and show the figures. The server is the
standard library's, followed by gunicorn's gthread with Flask if `unsnarl[demo]`
is installed.
"""


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors as ``CommandError``."""

    def error(self, message: str) -> NoReturn:
        """Raise the error as a ``CommandError``."""
        raise CommandError(f"{message}, in `unsnarl demo`", "see `unsnarl demo --help`")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="unsnarl demo",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="store_true", help="show this help")
    parser.add_argument("--quick", action="store_true", help="a rough measurement: one server, short windows")
    parser.add_argument(
        "--seconds", type=_seconds, metavar="N", help=f"time of all windows together (default {SECONDS:.0f})"
    )
    parser.add_argument(
        "--threads", type=_threads, default=HOGS, metavar="N", help=f"CPU-bound threads (default {HOGS})"
    )
    parser.add_argument(
        "--svg", type=Path, default=Path(PICTURE), metavar="FILE", help=f"the picture (default {PICTURE})"
    )
    parser.add_argument("--json", action="store_true", help="print the figures as JSON instead of the table")
    return parser


def _seconds(text: str) -> float:
    low, high = SECONDS_RANGE
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not low <= seconds <= high:
        raise argparse.ArgumentTypeError(f"takes seconds from {low:g} to {high:g}, not {text!r}")
    return seconds


def _threads(text: str) -> int:
    if not text.isdecimal() or int(text) > HOGS_LIMIT:
        raise argparse.ArgumentTypeError(f"takes a number from 0 to {HOGS_LIMIT}, not {text!r}")
    return int(text)


def options_of(arguments: list[str]) -> argparse.Namespace:
    """Parse the arguments.

    Raises:
        CommandError: the arguments are invalid; its status is 2.
    """
    return _parser().parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl demo`` and carry it out.

    Raises:
        CommandError: an option is invalid, the picture cannot be written, the
            scheduler cannot be installed, or a server failed.
    """
    options = options_of(arguments)
    if options.help:
        return show(_parser().format_help())
    if is_switched_off():
        raise CommandError("UNSNARL=off is set, so both sides would be stock", "unset UNSNARL for the demonstration", 1)
    if enablement.find() is not None:
        raise CommandError(
            "this environment is enabled, so both sides would have unsnarl", "run `unsnarl disable` before", 1
        )
    _check_picture(options.svg)
    return _run(options)


def _check_picture(path: Path) -> None:
    """Fail before the measurement if the picture cannot be written."""
    folder = path.parent
    if path.is_dir():
        raise CommandError(f"the picture cannot be written: {path} is a directory", "name a file: `--svg demo.svg`")
    if not folder.is_dir():
        raise CommandError(f"the picture cannot be written: no directory {folder}", f"make it: `mkdir -p {folder}`")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise CommandError(f"the picture cannot be written: no permission for {path}", "name another file with `--svg`")


def _run(options: argparse.Namespace) -> int:
    from unsnarl.demo import measurement
    from unsnarl.demo.child import ChildError, SilentChildError
    from unsnarl.demo.progress import ProgressLine
    from unsnarl.demo.report import Report
    from unsnarl.errors import UnsupportedInterpreter

    plan = plan_of(options, measurement.kinds_here())
    try:
        with ProgressLine(plan) as line:
            windows = measurement.measure(plan, line.advance)
    except UnsupportedInterpreter as refusal:
        raise CommandError(f"{refusal.reason}, in {sys.executable}", refusal.hint, 1) from None
    except SilentChildError as failure:
        raise CommandError(str(failure), _busy_hint(), 1) from None
    except ChildError as failure:
        raise CommandError(str(failure), "try again; if it fails again, run `unsnarl gil probe`", 1) from None
    report = Report(plan, windows)
    _write_picture(options.svg, report.svg())
    show(report.json() if options.json else report.text())
    sys.stderr.write(f"picture: {options.svg}\n")
    return 0


def _busy_hint() -> str:
    """Return the next step after a server or a load that was silent for long: nearly always, a busy machine."""
    busy = f"load average {os.getloadavg()[0]:.0f}, processors: {len(os.sched_getaffinity(0))}"
    return f"the machine may be too busy to measure on ({busy}): try again when it has less to do"


def plan_of(options: argparse.Namespace, kinds: tuple[str, ...]) -> Plan:
    """Return the plan, with the time distributed over all windows."""
    from unsnarl.demo.measurement import Plan

    kinds = kinds[:1] if options.quick else kinds
    seconds = options.seconds or (QUICK_SECONDS if options.quick else SECONDS)
    plan = Plan(kinds, CONNECTIONS, options.threads, PAIRS, seconds, WARMUP_S)
    return plan._replace(window_s=seconds / plan.window_count())


def _write_picture(path: Path, svg: str) -> None:
    try:
        path.write_text(svg, encoding="utf-8")
    except OSError as error:
        raise CommandError(
            f"the picture cannot be written: {path}: {error.strerror}", "name another file with `--svg`", 1
        ) from None
