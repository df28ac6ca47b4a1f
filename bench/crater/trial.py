"""Runs one suite in all ways, judges the differences by repetition, and returns the result as data.

A test that differs once is run again, alone and repeatedly, plainly and in the way in which it differed. If it also
fails plainly, it is flaky; if it no longer differs, it did not happen again, which is kept and said; otherwise it is a
defect, of unsnarl or of the test, which the manifest may explain. A run that crashes or comes to no end, unlike the
plain one, is repeated as a whole, with more time, and judged likewise.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bench.crater import outcomes, running
from bench.crater.manifest import Suite
from bench.crater.outcomes import Difference
from bench.crater.preparation import Unprepared

REPETITIONS = 3
"""How often a differing test is run again, alone, in each of the two ways."""
MOST_REPEATED = 20
"""Tests may differ for one common reason: no more than these are repeated."""

PATIENCE = 2
"""A run that came to another end than the plain one is repeated with this many times its limit."""

PLAIN, AGAIN = "plain", "plain again"
REPORTED = running.REPORT
Progress = Callable[[str], None]


def carry_out(suite: Suite, python: Path, directory: Path, progress: Progress) -> dict[str, Any]:
    """Run a prepared suite in all ways and return the result.

    Raises:
        Unprepared: no test passes plainly, or a plain run came to no end or has no report, so that nothing can be
            compared.
    """
    runs: dict[str, running.Run] = {}
    ends: list[dict[str, Any]] = []
    for way in running.WAYS:
        progress(way)
        runs[way] = running.run(suite, way, python, directory)
        if way == PLAIN and outcomes.PASSED not in runs[way].outcomes.values():
            raise Unprepared(_nothing_passes(runs[way], directory))
        if (ended := runs[way].outcomes[outcomes.THE_RUN]) == REPORTED:
            continue
        if way in (PLAIN, AGAIN):
            raise Unprepared(f"nothing to compare with: a plain run came to {ended!r}")
        progress(f"{way} again, since it came to {ended!r}")
        again = running.run(replace(suite, limit_s=PATIENCE * suite.limit_s), way, python, directory)
        if again.outcomes[outcomes.THE_RUN] == REPORTED:
            ends.append(_end_that_did_not_happen_again(way, ended))
            runs[way] = again
    first = runs[PLAIN].outcomes
    flaky = set(outcomes.flaky(first, runs[AGAIN].outcomes))
    found = [
        one
        for way in running.WAYS
        if way not in (PLAIN, AGAIN)
        for one in _differences(first, way, runs[way].outcomes, flaky)
    ]
    judged = ends + _judged(suite, python, directory, found, flaky, progress)
    return {
        "ways": {way: _summary(run) for way, run in runs.items()},
        "flaky": sorted(flaky),
        "differences": judged,
        "failing": sorted(name for name, one in first.items() if one == outcomes.FAILED and name not in flaky),
        "warm": _warm(suite, python, directory),
        "tails": {
            one["way"]: runs[one["way"]].tail.replace(str(directory.parent), ".")
            for one in judged
            if one["verdict"] == "differs"
        },
    }


def _nothing_passes(run: running.Run, directory: Path) -> str:
    """Say in one line why a plain run is nothing to compare with."""
    ended = run.outcomes[outcomes.THE_RUN]
    has_report = ended == REPORTED or len(run.outcomes) > 1
    what = "no test passes plainly" if has_report else "the plain run reports no outcomes"
    last = (run.tail.replace(str(directory), ".").strip().splitlines() or [""])[-1]
    return f"{what} ({ended}): {last.strip('= ')}"


def _end_that_did_not_happen_again(way: str, ended: str) -> dict[str, Any]:
    one = Difference(outcomes.THE_RUN, way, REPORTED, ended)
    return asdict(one) | {"verdict": "did not happen again", "repeated": {way: [REPORTED]}}


def _differences(first: outcomes.Outcomes, way: str, made: outcomes.Outcomes, flaky: set[str]) -> list[Difference]:
    """Return the differing tests; a run without a report is one difference, and not one of each test."""
    if made.keys() == {outcomes.THE_RUN}:
        return [Difference(outcomes.THE_RUN, way, first[outcomes.THE_RUN], made[outcomes.THE_RUN])]
    return outcomes.differences(first, way, made, flaky)


def _summary(run: running.Run) -> dict[str, Any]:
    return {"status": run.status, "wall_s": round(run.wall_s, 2), **outcomes.counted(run.outcomes)}


def _judged(
    suite: Suite, python: Path, directory: Path, found: list[Difference], flaky: set[str], progress: Progress
) -> list[dict[str, Any]]:
    """Repeat each differing test; add those that turn out to be flaky to ``flaky``."""
    judged: list[dict[str, Any]] = []
    for number, one in enumerate(found):
        if one.test in suite.known:
            judged.append(asdict(one) | {"verdict": "explained", "reason": suite.known[one.test]})
            continue
        repeatable = one.test != outcomes.THE_RUN and number < MOST_REPEATED
        counts = _repeated(suite, one, python, directory, progress) if repeatable else {}
        verdict = verdict_of(one, counts)
        if verdict == "flaky":
            flaky.add(one.test)
        judged.append(asdict(one) | {"verdict": verdict, "repeated": counts})
    return judged


def _repeated(suite: Suite, one: Difference, python: Path, directory: Path, progress: Progress) -> dict[str, list[str]]:
    """Return the outcomes of one test alone, by way."""
    counts: dict[str, list[str]] = {PLAIN: [], one.way: []}
    for _ in range(REPETITIONS):
        for way, made in counts.items():
            progress(f"{one.test} again: {way}")
            run = running.run(suite, way, python, directory, [one.test])
            made.append(run.outcomes.get(one.test, outcomes.ABSENT))
    return counts


def verdict_of(one: Difference, counts: dict[str, list[str]]) -> str:
    """Return ``flaky``, ``did not happen again`` or ``differs``."""
    if not counts:
        return "differs"
    plain, others = counts[PLAIN], counts[one.way]
    if outcomes.ABSENT in (*plain, *others):
        return "differs"
    if any(outcome != one.plain for outcome in plain):
        return "flaky"
    return "did not happen again" if all(outcome == one.plain for outcome in others) else "differs"


def _warm(suite: Suite, python: Path, directory: Path) -> dict[str, Any] | None:
    """Run the suite's command plainly and warm, and compare what it prints and its status; None without a command."""
    if not suite.command:
        return None
    variables = running.environment(suite, python, str(directory)) | {"UNSNARL_WARM_DIR": str(directory / ".warm")}
    (directory / ".warm").mkdir(mode=0o700, exist_ok=True)
    unsnarl = str(python.with_name("unsnarl"))
    script = str(python.with_name(suite.command[0]))

    def call(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            words, cwd=directory, env=variables, capture_output=True, text=True, check=False, timeout=suite.limit_s
        )
        return done.returncode, done.stdout, done.stderr

    plain = call(script, *suite.command[1:])
    call(unsnarl, "warm", "run", "--", script, *suite.command[1:])  # learns
    started = call(unsnarl, "warm", "start", "--", script)
    warm = call(unsnarl, "warm", "run", "--require", "--", script, *suite.command[1:])
    call(unsnarl, "warm", "stop")
    if started[0] != 0 or warm[0] == 69:
        return {"verdict": "stays plain", "reason": (started[2] or warm[2]).strip().splitlines()[:1]}
    return {"verdict": "same" if plain == warm else "differs", "plain": plain[:2], "warm": warm[:2]}
