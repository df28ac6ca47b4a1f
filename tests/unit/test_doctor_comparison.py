"""A way is faster or slower only beyond noise; what does not end or differs is refused."""

import pytest

from unsnarl.cli import doctor
from unsnarl.cli.failure import CommandError
from unsnarl.doctor import comparison
from unsnarl.doctor.diagnosis import Diagnosis, Effect, conclude
from unsnarl.doctor.trial import Trial
from unsnarl.trace.findings import Finding, Remedy


def trials(*walls: float) -> list[Trial]:
    return [Trial(0, wall, wall, 1, "") for wall in walls]


@pytest.mark.parametrize(
    ("walls", "verdict"),
    [
        ((1.0, 1.01, 1.02), "same"),
        ((0.5, 0.51, 0.52), "faster"),
        ((2.0, 2.1, 2.2), "slower"),
        ((0.5, 1.0, 1.5), "same"),
        ((0.97, 0.975, 0.98), "same"),
    ],
)
def test_a_verdict_needs_a_difference_beyond_noise(walls: tuple[float, ...], verdict: str) -> None:
    stock = trials(1.0, 1.01, 1.02)
    found = comparison.outcome("way", "", trials(*walls), stock)
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(1.01 / sorted(walls)[1])


def diagnosis(*ways: tuple[str, float]) -> Diagnosis:
    stock = trials(1.0, 1.0, 1.0)
    outcomes = [comparison.outcome(name, f"unsnarl {name}", trials(wall, wall, wall), stock) for name, wall in ways]
    return Diagnosis(["app.py"], 0, [comparison.outcome("stock", "python", stock, stock), *outcomes])


def test_what_helps_is_named_with_its_factor() -> None:
    found = diagnosis(("run", 0.5), ("patch", 1.0))
    conclude(found)
    assert found.helps
    assert found.verdict == ["run helps: 2.00 × as fast as stock. `unsnarl run`"]


def test_what_only_shortens_waits_helps_too() -> None:
    found = diagnosis(("run", 1.0))
    found.effects = [Effect("health", "scheduler", 5e6, 5e4)]
    conclude(found)
    assert found.helps
    assert "5.00 ms to 50.0 µs" in found.verdict[0]


def test_where_nothing_helps_the_reason_is_the_findings() -> None:
    found = diagnosis(("run", 1.0))
    found.findings = [Finding("long-hold", "severe", "x", remedy=Remedy("unsnarl will not help here: one C call"))]
    conclude(found)
    assert not found.helps
    assert found.verdict == ["unsnarl will not help here: one C call"]


def test_what_costs_time_is_said() -> None:
    found = diagnosis(("run", 2.0))
    conclude(found)
    assert "costs time" in found.verdict[0]


@pytest.mark.parametrize("words", [["--runs", "1", "a"], ["--runs", "x", "a"], ["--what", "a"], ["--limit"], []])
def test_nonsense_is_refused(words: list[str]) -> None:
    with pytest.raises(CommandError):
        doctor.parse(words)


def test_options() -> None:
    request, run = doctor.parse(["--runs=3", "--seconds", "9", "--json", "--", "hg", "status", "--json"])
    assert (request.runs, request.budget_s, request.as_json) == (3, 9.0, True)
    assert (run.kind, run.target, run.arguments) == ("command", "hg", ["status", "--json"])
