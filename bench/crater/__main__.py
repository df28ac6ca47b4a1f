"""Run other projects' tests plainly and with unsnarl.

    scripts/crater [--debian PYTHON] [--list] [--only NAME,...] [--chosen] [--prepare] [--offline] [--jobs N]
                   [--python PATH] [--wheel DIR] [--cache DIR] [--data DIR] [--report FILE]

A NAME may be a pattern: --only 'cpython-*' is the whole of CPython's own tests. Keeps one result a suite and Python in
docs/results/data/crater, and renders them with --report. A suite that cannot be prepared is kept with the reason. Exits
with 1 if a test differs without an explanation, with 2 if the command line or the manifest is wrong, with 77 if none of
the suites, or fewer than half of them, could be run. --debian, which comes first, is carried out by scripts/crater.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import fnmatch
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from bench import machine
from bench.crater import manifest, network, page, preparation, services, trial
from bench.crater.manifest import Suite

ROOT = Path(__file__).resolve().parents[2]
NONE_RAN = 77
"""The status with which a step of CI counts as not run: no suite ran, or too few."""
DATA = ROOT / "docs" / "results" / "data" / "crater"
CACHE = Path.home() / ".cache" / "unsnarl-crater"


Result = dict[str, Any]


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaints are an error and a hint."""

    def error(self, message: str) -> NoReturn:
        raise SystemExit(_fail(message, f"see `{self.prog} --help`"))


def _fail(what: str, hint: str) -> int:
    sys.stderr.write(f"error: {what}\nhint: {hint}\n")
    return 2


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command line, taken apart."""
    parser = OneLineParser(
        prog="scripts/crater",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=argparse.SUPPRESS,
    )
    parser.add_argument("--list", action="store_true", help="list the suites and run none")
    parser.add_argument("--only", default="", metavar="NAME,...", help="only these suites, or those of a pattern")
    parser.add_argument("--chosen", action="store_true", help="only the tenth that each CI run can afford")
    parser.add_argument("--prepare", action="store_true", help="only install and unpack, run nothing")
    parser.add_argument("--offline", action="store_true", help="run the tests with no network but loopback (as root)")
    parser.add_argument("--jobs", type=_jobs, default=1, metavar="N", help="suites at the same time (default 1)")
    parser.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="the interpreter to test with (this one)"
    )
    parser.add_argument(
        "--wheel", type=Path, metavar="DIR", help="a folder with a wheel of unsnarl (default: build one)"
    )
    parser.add_argument("--cache", type=Path, default=CACHE, metavar="DIR", help=f"environments and sources ({CACHE})")
    parser.add_argument("--data", type=Path, default=DATA, metavar="DIR", help="the results")
    parser.add_argument("--report", type=Path, metavar="FILE", help="render all kept results into a page")
    return parser.parse_args(words)


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"takes a number from 1 to 64, not {text!r}")
    return int(text)


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command line and return the exit status."""
    options = parse(words)
    try:
        suites = chosen(manifest.read(), options)
    except (manifest.ManifestError, OSError) as error:
        return _fail(str(error), "see bench/crater/manifest.toml, or `scripts/crater --list`")
    if options.list:
        for suite in suites:
            print(f"{suite.name:<24} {suite.version:<12} {suite.source:<8} {' '.join(suite.tests)}")
        return 0
    status = 0
    if options.only or options.chosen or options.prepare or options.report is None:
        try:
            python, version = _interpreter(options.python)
            with _alone_in(options.cache / version):
                status = _run_all(suites, options, python, version)
        except Busy as error:
            return _fail(str(error), "wait until it has ended, or choose another folder by --cache")
        except preparation.Unprepared as error:
            return _fail(str(error), "build one into the folder of --wheel: `pip wheel --no-deps -w DIR .`")
    if options.report is not None:
        results = explained(kept(options.data), manifest.read())
        options.report.write_text(page.page(results, manifest.left_out(), versions()), encoding="utf-8")
    return status


def chosen(suites: list[Suite], options: argparse.Namespace) -> list[Suite]:
    """Return the suites that the command line means.

    Raises:
        ManifestError: a name is not in the manifest.
    """
    patterns = [word for word in options.only.split(",") if word]
    names = [suite.name for suite in suites]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise manifest.ManifestError(f"there is no suite {pattern!r}")
    if patterns:
        suites = [suite for suite in suites if any(fnmatch.fnmatchcase(suite.name, pattern) for pattern in patterns)]
    return [suite for suite in suites if suite.chosen] if options.chosen else suites


def versions() -> list[str]:
    """Return the versions of CPython that unsnarl is for, as its package says it."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    words = [
        classifier.split(" :: ")[-1] for classifier in said if classifier.startswith("Programming Language :: Python")
    ]
    return [word for word in words if re.fullmatch(r"3\.\d+", word)]


def kept(folder: Path) -> list[Result]:
    """Return all kept results."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def explained(results: list[Result], suites: list[Suite]) -> list[Result]:
    """Return the results with what is known meanwhile about their differences.

    The manifest may have a reason, which holds for its suite's version alone; and a test that turned out to be flaky
    when it was repeated for one way is flaky in the other one too.
    """
    reasons = {(suite.name, suite.version): suite.known for suite in suites}
    for result in results:
        # The interpreter's own tests have its version in a result, and none in the manifest.
        known = reasons.get((result["suite"], result["version"])) or reasons.get((result["suite"], ""), {})
        for one in result.get("differences", []):
            if one["verdict"] != "differs":
                continue
            if one["test"] in known:
                one |= {"verdict": "explained", "reason": known[one["test"]]}
            elif one["test"] in result["flaky"]:
                one |= {"verdict": "flaky"}
    return results


class Busy(Exception):  # noqa: N818 -- a state of the folder, not a mistake
    """Another run uses the environments."""


@contextlib.contextmanager
def _alone_in(cache: Path) -> Generator[None]:
    """Keep other runs away: each would install its own unsnarl into the environments in which this one's tests run.

    Raises:
        Busy: another run is there.
    """
    cache.mkdir(parents=True, exist_ok=True)
    with open(cache / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(f"another run uses the environments in {cache}") from None
        yield


VERSION = """
import platform, sysconfig
print(platform.python_version() + "t" * bool(sysconfig.get_config_var("Py_GIL_DISABLED")))
"""


def _interpreter(name: str) -> tuple[str, str]:
    """Return the path and the version of an interpreter, as ``3.11.7``, or ``3.14.7t`` if it is free-threaded.

    Raises:
        Unprepared: there is none of this name.
    """
    python: str | None = shutil.which(name)
    if python is None:
        raise preparation.Unprepared(f"there is no interpreter {name!r}")
    return python, _output([python, "-c", VERSION])


def _run_all(suites: list[Suite], options: argparse.Namespace, python: str, version: str) -> int:
    wheel = preparation.unsnarl_wheel(options.wheel or _built(options.cache / version, python), version)
    # A shell that starts this in the background ignores SIGINT, and tests that interrupt themselves would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    options.data.mkdir(parents=True, exist_ok=True)

    if options.offline or options.prepare:
        prepared = [_prepared(suite, options.cache / version, wheel, python) for suite in suites]
        if options.prepare:
            return 0 if all(prepared) else 1
        _leave_the_network()

    def one(suite: Suite) -> Result:
        result = result_of(suite, options.cache / version, wheel, python, version)
        path = options.data / f"{suite.name}-{version}.json"
        path.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        _say(suite, _line(result))
        return result

    with ThreadPoolExecutor(options.jobs) as pool:
        return status_of(list(pool.map(one, suites)))


def status_of(results: Sequence[Result]) -> int:
    """Return the exit status of the suites that were to be run, after a line if few or none of them could be."""
    ran = [result for result in results if "ways" in result]
    if any(page.defects(result) for result in ran):
        return 1
    if 2 * len(ran) < len(results) or not ran:
        reasons = "; ".join(sorted({result["unprepared"] for result in results if "unprepared" in result}))
        few = f"only {len(ran)} of {len(results)} suites" if ran else "no suite"
        sys.stderr.write(f"error: {few} could be run\nhint: {reasons or 'none is chosen'}\n")
        return NONE_RAN
    return 0


def _leave_the_network() -> None:
    try:
        network.leave()
    except OSError as error:
        raise SystemExit(
            _fail(f"no network namespace: {error.strerror}", "run it as root, or without --offline")
        ) from None


def _prepared(suite: Suite, cache: Path, wheel: Path, python: str) -> bool:
    try:
        preparation.prepare(suite, cache / suite.name, wheel, python)
    except preparation.Unprepared as error:
        _say(suite, str(error))
        return False
    return True


def result_of(suite: Suite, cache: Path, wheel: Path, python: str, version: str) -> Result:
    """Prepare and run one suite; a suite that cannot be prepared has the reason instead of outcomes."""
    head = {
        "suite": suite.name,
        "version": suite.version or version,
        "python": version,
        "unsnarl": preparation.described(wheel),
        "bench": machine.sources(),
        "system": platform.platform(),
        "without": suite.without,
        "origin": suite.origin,
    }
    try:
        interpreter, directory = preparation.prepare(suite, cache / suite.name, wheel, python)
        suite = preparation.of_interpreter(suite, interpreter)
        with services.running(suite.service) as variables:
            suite = replace(suite, variables=suite.variables | variables)
            return head | trial.carry_out(suite, interpreter, directory, lambda step: _say(suite, step))
    except preparation.Unprepared as error:
        return head | {"unprepared": str(error)}


def _line(result: Result) -> str:
    if "ways" not in result:
        return f"not run: {result['unprepared']}"
    found = page.defects(result)
    plain = result["ways"]["plain"]
    names = ", ".join(f"{one['test']} ({one['way']})" for one in found[:5])
    counts = f"{plain['passed']} passed, {plain['failed']} failed also plainly, {len(result['flaky'])} flaky"
    return f"{counts}: {f'{len(found)} DIFFER: {names}' if found else 'the same'}"


def _built(cache: Path, python: str) -> Path:
    """Build a wheel of these sources for an interpreter and return its folder."""
    folder = cache / "wheel"
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--python", python]  # this pip, as that interpreter may have none
    with _building_alone():
        subprocess.run([*pip, "wheel", "--quiet", "--no-deps", "-w", folder, ROOT], check=False)
    return folder


@contextlib.contextmanager
def _building_alone(root: Path = ROOT) -> Generator[None]:
    """Wait until no other run builds in the sources' directory, where each build begins by removing what it finds.

    The directory itself is locked, since a run in Debian's root, which has another cache, has the same one.
    """
    directory = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def _output(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _say(suite: Suite, text: str) -> None:
    sys.stderr.write(f"{suite.name}: {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
