"""Renders the kept results of crater as a page. Pure: data in, Markdown out; losses come first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.markdown import table

Result = dict[str, Any]
PROGRESS = re.compile(r": [.sxXFE]{2,}\s*$")
"""The marks that pytest prints for the tests of a run that came to no end; they say nothing to a reader of the page."""
INTRODUCTION = """# Other projects' tests, plainly and with unsnarl

Each suite was run twice plainly, then under `unsnarl run`, then under `unsnarl run --patch`, and every test's outcome
compared: passed, failed, skipped (as an expected failure counts), or absent if a run's report lacks the test. A test
whose outcome differs between the plain runs is flaky. A test that differs only with unsnarl was run again, alone,
three times in each way, unless its cause is known and stands here. A suite is the tests of one package, or a part of
CPython's own tests that fits a time limit; it has a row for each interpreter. Rendered by `scripts/crater --report`
from `docs/results/data/crater`.

The machine was shared, so the times only tell that a suite was really run; they are not a measurement.
"""
LEGEND = """Tests that "failed also plainly" fail without unsnarl too: a newer release of another library, a program
that is not installed or the lack of a network breaks them. "Works" under `run` or `run --patch`: no test's outcome
differs without a known cause. "Warm" is whether the package's command printed the same under `unsnarl warm`, for
packages that have one.
"""


def page(results: Sequence[Result], modules: Mapping[str, str], versions: Sequence[str] = ()) -> str:
    """Return the page of all results.

    Args:
        results: one for each suite and interpreter.
        modules: those of CPython's tests that no suite has, with the reasons.
        versions: of CPython, as ``3.12``, that the page names even if nothing was run with them.
    """
    ordered = sorted(results, key=lambda result: (result["python"], result["suite"].lower()))
    ran = [result for result in ordered if "ways" in result]
    parts = [
        INTRODUCTION,
        _overview(ordered),
        _interpreters(ran, versions),
        _differences(ran),
        _unprepared(ordered),
        _table(ran),
    ]
    parts += [_origins(ran), _modules(modules), _flaky(ran)]
    return "\n".join(part for part in parts if part)


def defects(result: Result) -> list[dict[str, Any]]:
    """Return the differences that nothing explains; each may be a defect of unsnarl."""
    warm: dict[str, Any] = result.get("warm") or {}
    found = [one for one in result.get("differences", []) if one["verdict"] == "differs"]
    if warm.get("verdict") == "differs":
        found.append({"test": "(its command, warm)", "way": "unsnarl warm", "plain": "", "outcome": "differs"})
    return found


def _overview(results: Sequence[Result]) -> str:
    ran = [result for result in results if "ways" in result]
    tests = sum(result["ways"]["plain"]["passed"] for result in ran)
    bad = [result for result in ran if defects(result)]
    names = ", ".join(result["suite"] for result in bad)
    unrun = len(results) - len(ran)
    return (
        f"**{len(ran)} runs of suites with {tests:,} passing tests: "
        f"{len(ran) - len(bad)} without an unexplained difference"
        f"{f', {len(bad)} with one ({names})' if bad else ''}. "
        f"{unrun} could not be run.**\n"
    )


def _interpreters(results: Sequence[Result], versions: Sequence[str]) -> str:
    """Return what was run with which interpreter; its own suites are those that any interpreter ran."""
    own = {result["suite"] for result in results if _is_own(result)}
    rows: list[list[str]] = []
    for version in dict.fromkeys(result["python"] for result in results):
        there = [result for result in results if result["python"] == version]
        mine = [result for result in there if _is_own(result)]
        missing = ", ".join(sorted(own - {result["suite"] for result in mine})) or "none"
        passing = sum(result["ways"]["plain"]["passed"] for result in mine)
        rows.append([version, f"{len(mine)} of {len(own)}", f"{passing:,}", missing, str(len(there) - len(mine))])
    tried = {".".join(row[0].split(".")[:2]) for row in rows if not row[0].endswith("t")}
    rows += [[version, f"0 of {len(own)}", "0", "all", "0"] for version in versions if version not in tried]
    head = ["Python", "suites of its own tests", "of these pass", "not run there", "packages"]
    return f"## Interpreters\n\n{table(head, sorted(rows, key=_order))}\n" if rows else ""


def _order(row: Sequence[str]) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", row[0])]


def _is_own(result: Result) -> bool:
    """Whether a result is one of the interpreter's own tests; a package may have an interpreter's version by chance."""
    return str(result["suite"]).startswith("cpython-")


def _differences(results: Sequence[Result]) -> str:
    rows = [
        [result["suite"], result["python"], f"`{_cell(one['test'])}`", one["way"], f"{one['plain']} → {one['outcome']}",
         _why(one)]
        for result in results
        for one in [*result["differences"], *(one for one in defects(result) if one["way"] == "unsnarl warm")]
    ]  # fmt: skip
    head = ["suite", "Python", "test", "way", "plainly → with unsnarl", "what became of it"]
    return f"## Differences\n\n{table(head, rows) if rows else 'None.'}\n"


def _why(one: dict[str, Any]) -> str:
    if one["way"] == "unsnarl warm":
        return "**differs**"
    if one["verdict"] == "explained":
        return _cell(one["reason"])
    repeated: dict[str, list[str]] = one.get("repeated") or {}
    counts = "; ".join(f"{way}: {', '.join(made)}" for way, made in repeated.items())
    verdict = f"**{one['verdict']}**" if one["verdict"] == "differs" else one["verdict"]
    return f"{verdict} ({counts})" if counts else verdict


def _unprepared(results: Sequence[Result]) -> str:
    rows = [
        [result["suite"], result["python"], _cell(PROGRESS.sub("", result["unprepared"]))]
        for result in results
        if "ways" not in result
    ]
    return f"## Not run\n\n{table(['suite', 'Python', 'reason'], rows)}\n" if rows else ""


def _table(results: Sequence[Result]) -> str:
    rows = [_row(result) for result in results]
    head = [
        "suite",
        "version",
        "Python",
        "passed",
        "failed also plainly",
        "skipped",
        "run",
        "run --patch",
        "warm",
        "seconds: plain, run, patch",
    ]
    left_out = dict.fromkeys(  # once for all interpreters
        f"- {result['suite']}, `{name}`: {reason}"
        for result in results
        for name, reason in result.get("without", {}).items()
    )
    listed = "\nLeft out:\n\n" + "\n".join(left_out) + "\n" if left_out else ""
    return f"## Suites\n\n{LEGEND}\n{table(head, rows)}{listed}"


def _origins(results: Sequence[Result]) -> str:
    """Return where the tests are from that the package registry does not have."""
    lines = [f"- {result['suite']}: {result['origin']}" for result in results if result.get("origin")]
    if not lines:
        return ""
    said = "Tests that no distribution has, taken from the project's repository, with the package from the registry:"
    return f"{said}\n\n" + "\n".join(dict.fromkeys(lines)) + "\n"


def _modules(modules: Mapping[str, str]) -> str:
    if not modules:
        return ""
    lines = [
        f"- {reason}: {', '.join(f'`{name}`' for name, why in modules.items() if why == reason)}"
        for reason in dict.fromkeys(modules.values())
    ]
    return "Modules of CPython's tests, of any version, that are in no suite:\n\n" + "\n".join(lines) + "\n"


def _row(result: Result) -> list[str]:
    ways = result["ways"]
    plain = ways["plain"]
    warm = result.get("warm")
    times = ", ".join(f"{ways[way]['wall_s']:.1f}" for way in ("plain", "unsnarl run", "unsnarl run --patch"))
    return [
        result["suite"],
        result["version"],
        result["python"],
        f"{plain['passed']:,}",
        str(plain["failed"]),
        str(plain["skipped"]),
        _verdict(result, "unsnarl run"),
        _verdict(result, "unsnarl run --patch"),
        warm["verdict"] if warm else "–",
        times,
    ]


def _verdict(result: Result, way: str) -> str:
    mine = [one for one in result["differences"] if one["way"] == way]
    if any(one["verdict"] == "differs" for one in mine):
        return "**differs**"
    return "works, see above" if any(one["verdict"] == "explained" for one in mine) else "works"


def _flaky(results: Sequence[Result]) -> str:
    lines = list(_flaky_lines(results))
    return "## Flaky\n\nTests with differing outcomes in plain runs:\n\n" + "\n".join(lines) + "\n" if lines else ""


def _flaky_lines(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        names = result["flaky"]
        if names:
            shown = ", ".join(f"`{name}`" for name in names[:10])
            more = f" and {len(names) - 10} more" if len(names) > 10 else ""
            yield f"- {result['suite']} ({result['python']}): {shown}{more}"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
