"""What a run of a test suite came to, and how two runs differ. Pure: reports in, facts out.

Outcomes are by test; a test that reports twice (its call and its teardown) has the worse one. A run that ends in
another way than by reporting failures (a crash, a hang) is an outcome of the pseudo-test ``(the run)``.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PASSED, FAILED, SKIPPED, ABSENT = "passed", "failed", "skipped", "absent"
THE_RUN = "(the run)"
_WORSE = {PASSED: 0, SKIPPED: 1, FAILED: 2}

Outcomes = dict[str, str]


@dataclass(frozen=True, slots=True)
class Difference:
    """A test whose outcome with unsnarl is not that of both plain runs.

    Attributes:
        test: its name.
        way: the way in which it differs.
        plain: its outcome in the plain runs.
        outcome: its outcome in that way.
    """

    test: str
    way: str
    plain: str
    outcome: str


def read(report: str) -> Outcomes:
    """Return the outcomes of a JUnit report; an expected failure counts as skipped, as pytest reports it.

    Raises:
        ValueError: the text is no such report.
    """
    try:
        root = ET.fromstring(report)
    except ET.ParseError as error:
        raise ValueError(str(error)) from None
    outcomes: Outcomes = {}
    for case in root.iter("testcase"):
        name, outcome = _name_of(case), _outcome_of(case)
        if _WORSE[outcome] >= _WORSE[outcomes.get(name, PASSED)]:
            outcomes[name] = outcome
    return outcomes


def _name_of(case: ET.Element) -> str:
    """Return pytest's node id where the report has its parts, else the name."""
    name, file, where = case.get("name", "?"), case.get("file"), case.get("classname", "")
    if not file:
        return f"{where}.{name}" if where else name
    stem = file.removesuffix(".py").replace("/", ".")
    classes = where.removeprefix(stem).strip(".").split(".") if where.startswith(stem) else []
    return "::".join([file, *(part for part in classes if part), name])


def _outcome_of(case: ET.Element) -> str:
    if case.find("failure") is not None or case.find("error") is not None:
        return FAILED
    return SKIPPED if case.find("skipped") is not None or case.get("result") == "skipped" else PASSED


def flaky(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """Return the tests whose outcomes differ between two plain runs."""
    names = first.keys() | second.keys()
    return sorted(name for name in names if first.get(name, ABSENT) != second.get(name, ABSENT))


def differences(
    plain: Mapping[str, str], way: str, outcomes: Mapping[str, str], flaky: Iterable[str]
) -> list[Difference]:
    """Return the tests that are not flaky and have another outcome in a way."""
    names = (plain.keys() | outcomes.keys()) - set(flaky)
    return [
        Difference(name, way, plain.get(name, ABSENT), outcomes.get(name, ABSENT))
        for name in sorted(names)
        if plain.get(name, ABSENT) != outcomes.get(name, ABSENT)
    ]


def counted(outcomes: Mapping[str, str]) -> dict[str, int]:
    """Return how many tests passed, failed and were skipped."""
    values = [outcome for name, outcome in outcomes.items() if name != THE_RUN]
    return {kind: values.count(kind) for kind in (PASSED, FAILED, SKIPPED)}
