"""What a run of a test suite came to, and how two runs differ. Pure: reports in, facts out.

Outcomes are by test; a test that reports twice (its call and its teardown) has the worse one. A run that ends in
another way than by reporting failures (a crash, a hang) is an outcome of the pseudo-test ``(the run)``.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

PASSED, FAILED, SKIPPED, ABSENT = "passed", "failed", "skipped", "absent"
THE_RUN = "(the run)"
SUBTEST = re.compile(r"(test\.\S+) [(\[]")
"""How regrtest names a test of which a subtest was skipped: its own name, and after that the subtest's parameters, in
which addresses are others in each run."""
NAMELESS = "?"
"""The first record without a name; the others have a number."""
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
    cases = list(root.iter("testcase"))
    modules = {module: file for case in cases if (file := case.get("file")) and (module := _module_of(case, file))}
    nameless = 0
    for case in cases:
        name, outcome = _name_of(case, modules), _outcome_of(case)
        if name == NAMELESS:
            nameless += 1
            name = NAMELESS if nameless == 1 else f"{NAMELESS} {nameless}"
        if _WORSE[outcome] >= _WORSE[outcomes.get(name, PASSED)]:
            outcomes[name] = outcome
    return outcomes


def _module_of(case: ET.Element, file: str) -> str:
    """Return which part of ``classname`` names the file: as much as the file's path ends with; empty if nothing does.

    pytest gives the path from the folder that was selected, dotted, with the classes after it. The file is the one in
    which the test is written, which is another one if the class inherits it.
    """
    dotted = f".{file.removesuffix('.py').replace('/', '.')}"
    return next((one for one in _beginnings(case.get("classname", "")) if dotted.endswith(f".{one}")), "")


def _beginnings(where: str) -> list[str]:
    """Return ``a.b.c``, ``a.b`` and ``a``."""
    parts = where.split(".") if where and not where.startswith(".") else []
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _name_of(case: ET.Element, modules: Mapping[str, str]) -> str:
    """Return pytest's node id where the report has its parts, else a name that no other test has.

    ``modules`` are the files of the report, by the part of ``classname`` that names them.
    """
    name, file, where = case.get("name", NAMELESS), case.get("file"), case.get("classname", "")
    if not file:
        subtest = SUBTEST.match(name)
        return f"{where}.{name}" if where else subtest[1] if subtest else name
    module = _module_of(case, file)
    if not module and where and not where.startswith("."):
        module = next((one for one in _beginnings(where) if one in modules), "")
        if not module:
            return f"{where}::{name}"
        file = modules[module]
    classes = where[len(module) :].strip(".")
    return "::".join([file, *(classes.split(".") if classes else []), name])


def _outcome_of(case: ET.Element) -> str:
    if "name" not in case.keys():  # noqa: SIM118 -- an element is no mapping
        return FAILED  # regrtest enters a name at a test's success, failure or skip, and none if only subtests failed
    if any(case.find(what) is not None for what in ("failure", "error", "outcome")):
        return FAILED  # regrtest has `outcome` where a test succeeds whose failure is expected
    # regrtest has `output` where a test fails whose failure is expected
    is_skipped = any(case.find(what) is not None for what in ("skipped", "output")) or case.get("result") == "skipped"
    return SKIPPED if is_skipped else PASSED


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
