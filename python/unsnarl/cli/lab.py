"""``unsnarl lab``: parses the command line, checks its arguments before anything runs, and prints.

``unsnarl.lab`` implements experiments, runs and reports. It is imported when needed, since it imports
rich, and for the report matplotlib if that is installed.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from unsnarl.cli import ending
from unsnarl.cli.failure import CommandError, Ended
from unsnarl.cli.result import show, show_wrapped

if TYPE_CHECKING:
    from unsnarl.lab.experiment import Case, Experiment
    from unsnarl.lab.running.runner import Session

OUT, QUICK_OUT = "unsnarl-lab", "unsnarl-lab-quick"
PAIRS_LIMIT = 1000
MOST_FAILURES = 10
"""Failed runs that are named at the end."""
QUICK_BUDGET_S = 110.0
"""Seconds for all runs of ``--quick``: two minutes, with the time before and after."""

_USAGE_TEXT = f"""\
usage: unsnarl lab list
       unsnarl lab run [OPTIONS...] [EXPERIMENT...]
       unsnarl lab report DIR

Repeat the experiments behind unsnarl: on a stock interpreter, with each feature
of unsnarl alone, and with its peers. A run without names runs all experiments.

list:
  --cases                also list the cases of each experiment

run:
  --python PATH          the interpreter to measure, with unsnarl installed; may
                         be repeated (default: this one)
  --quick                small sizes, one pair each, two minutes in all
  --pairs N              pairs to add to each case (default: the experiment's)
  --only PATTERN         only cases whose name matches, such as
                         'start, all cores*'; may be repeated
  --out DIR              the directory of the results, which are continued
                         (default: {OUT}; with --quick, {QUICK_OUT})

report:
  DIR                    the directory of `run --out`, in which report.md,
                         report.html, report.json and plots are written; the
                         plots need unsnarl[lab]

  -h, --help             this text
"""


class _Parser(argparse.ArgumentParser):
    """A parser that raises its errors as ``CommandError``."""

    def error(self, message: str) -> NoReturn:
        """Raise the error as a ``CommandError``."""
        raise CommandError(f"{message}, in `unsnarl lab`", "see `unsnarl lab --help`")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="unsnarl lab", allow_abbrev=False, add_help=False)
    verbs = parser.add_subparsers(dest="verb", required=True, parser_class=_Parser, metavar="list, run or report")
    listing = verbs.add_parser("list", add_help=False, allow_abbrev=False)
    listing.add_argument("--cases", action="store_true")
    run = verbs.add_parser("run", add_help=False, allow_abbrev=False)
    run.add_argument("names", nargs="*")
    run.add_argument("--python", action="append", default=[])
    run.add_argument("--quick", action="store_true")
    run.add_argument("--pairs", type=_pairs)
    run.add_argument("--only", action="append", default=[])
    run.add_argument("--out", type=Path)
    report = verbs.add_parser("report", add_help=False, allow_abbrev=False)
    report.add_argument("folder", type=Path)
    return parser


def _pairs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= PAIRS_LIMIT:
        raise argparse.ArgumentTypeError(f"takes a number from 1 to {PAIRS_LIMIT}, not {text!r}")
    return int(text)


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl lab`` and carry them out.

    Raises:
        CommandError: the command line is invalid, an interpreter cannot be
            measured, or results cannot be stored or read.
    """
    if not arguments or "-h" in arguments or "--help" in arguments:
        return show(_USAGE_TEXT)
    options = _parser().parse_args(arguments)
    if options.verb == "list":
        return _list(options.cases)
    if options.verb == "report":
        return _report(options.folder)
    return _run(options, shlex.join(["unsnarl", "lab", *arguments]))


def _list(with_cases: bool) -> int:
    from unsnarl.lab.experiments import NAMES, experiment

    lines: list[str] = []
    for name in NAMES:
        one = experiment(name)
        lines.append(f"{name:11} {one.title} ({one.source})")
        lines.append(f"{'':11} {', '.join(variant.name for variant in one.variants)}")
        if with_cases:
            lines += [f"{'':13} {case.name}" for case in one.cases]
    return show_wrapped("\n".join(lines) + "\n")


def _report(folder: Path) -> int:
    from unsnarl.lab.results import page, plots
    from unsnarl.lab.results.store import StoreError

    try:
        written = page.write(folder, page.load(folder), f"unsnarl lab report {shlex.quote(str(folder))}")
    except StoreError as failure:
        raise CommandError(failure.what, failure.hint, 1) from None
    if not plots.is_available():
        sys.stderr.write(f"no plots: matplotlib is not installed (hint: pip install '{plots.EXTRA}')\n")
    return show("".join(f"{path}\n" for path in written if path.suffix != ".svg"))


def _run(options: argparse.Namespace, command: str) -> int:
    from unsnarl.lab.results.store import StoreError, held

    chosen = [(one, _cases(one, options)) for one in _experiments(options.names)]
    chosen = [(one, cases) for one, cases in chosen if cases]
    if not chosen:
        raise CommandError(
            f"no case matches {' or '.join(map(repr, options.only))}", "see `unsnarl lab list --cases` for their names"
        )
    options.out = options.out or Path(QUICK_OUT if options.quick else OUT)
    _prepare_folder(options.out)
    machines = _machines(options.python or [sys.executable])
    try:
        with ending.by_exception(), held(options.out):
            return _measure(_sessions(chosen, machines, options, command), options)
    except StoreError as failure:
        raise CommandError(failure.what, failure.hint, 1) from None
    except (KeyboardInterrupt, Ended):
        sys.stderr.write(f"interrupted: the results so far are in {options.out}\n")
        raise


def _experiments(names: list[str]) -> list[Experiment]:
    from difflib import get_close_matches

    from unsnarl.lab.experiments import NAMED_ONLY, NAMES, experiment

    for name in names:
        if name not in NAMES:
            close = get_close_matches(name, NAMES, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(NAMES)}"
            raise CommandError(f"no such experiment: {name!r}", hint)
    return [experiment(name) for name in dict.fromkeys(names or [name for name in NAMES if name not in NAMED_ONLY])]


def _cases(one: Experiment, options: argparse.Namespace) -> list[Case]:
    every = one.quick if options.quick else one.cases
    patterns: list[str] = options.only or ["*"]
    return [case for case in every if any(fnmatch.fnmatchcase(case.name, pattern) for pattern in patterns)]


def _prepare_folder(folder: Path) -> None:
    """Create the results directory, and fail before measuring if it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".probe-{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CommandError(
            f"results cannot be stored in {folder}: {error.strerror}", "name another directory: `--out DIR`", 1
        ) from None


def _machines(pythons: list[str]) -> dict[str, dict[str, Any]]:
    """Return the description of each interpreter and its machine, by the interpreter's path."""
    from unsnarl.lab import machine, presence

    found: dict[str, dict[str, Any]] = {}
    for given in pythons:
        python = shutil.which(given)
        if python is None:
            raise CommandError(f"there is no interpreter {given!r}", "give the path of a python, as `--python PATH`")
        python = os.path.abspath(python)
        try:
            found[python] = machine.describe(python)
        except (OSError, subprocess.SubprocessError, ValueError):
            raise CommandError(f"{given} is no Python 3.11 or later", "give the path of another `--python`") from None
        if not presence.imports(python, "unsnarl._native"):
            raise CommandError(
                f"unsnarl is not installed for {given}", f"install it: `{given} -m pip install unsnarl`", 1
            )
        if presence.is_enabled(python):
            raise CommandError(
                f"the environment of {given} is enabled, so stock would have unsnarl too",
                f"run `{given} -m unsnarl disable` before",
                1,
            )
    return found


def _sessions(
    chosen: list[tuple[Experiment, list[Case]]],
    machines: dict[str, dict[str, Any]],
    options: argparse.Namespace,
    command: str,
) -> list[Session]:
    from unsnarl.lab.results.store import Results
    from unsnarl.lab.running.runner import prepare

    sessions: list[Session] = []
    taken: dict[Path, str] = {}
    for one, cases in chosen:
        for python, machine in machines.items():
            results = Results(options.out, one, machine)
            if taken.setdefault(results.path, python) != python:
                raise CommandError(
                    f"{python} and {taken[results.path]} have the same version, so their results have the same file",
                    "measure one of them into another directory: `--out DIR`",
                )
            pairs = options.pairs or (one.quick_pairs if options.quick else one.pairs)
            sessions.append(prepare(one, cases, python, results, pairs, command))
    return sessions


def _measure(sessions: list[Session], options: argparse.Namespace) -> int:
    from unsnarl.lab.presence import reasons_in_words
    from unsnarl.lab.running.progress import ProgressLine
    from unsnarl.lab.running.runner import carry_out

    absent = {name: reason for session in sessions for name, reason in session.absent.items()}
    for reason in reasons_in_words(absent):
        sys.stderr.write(f"missing: {reason}\n")
    with ProgressLine(sessions) as line:
        account = carry_out(sessions, line.advance, QUICK_BUDGET_S if options.quick else None)
    if account.left_out:
        sys.stderr.write(f"{account.left_out} runs were left out: the two minutes had elapsed\n")
    if account.late:
        sys.stderr.write(f"{account.late} runs exceeded their time limit\n")
    if account.failures:
        sys.stderr.writelines(f"failed: {failure}\n" for failure in account.failures[:MOST_FAILURES])
        sys.stderr.write(f"{len(account.failures)} runs failed: the reasons are in the results\n")
    show("".join(f"{session.results.path}\n" for session in sessions))
    sys.stderr.write(f"for tables and plots: unsnarl lab report {options.out}\n")
    return 0 if account.is_good() else 1
