"""Two builds are called different only where their ratio lies outside the noise of each."""

import json
from typing import TYPE_CHECKING, Any

import pytest

from bench.builds import judgement, measured, page, warm_command
from bench.builds.judgement import FASTER, RUNS, SAME, SLOWER, TOO_FEW, Interval, judge
from tests.unit.bench_machine import MACHINE
from unsnarl.statistics import interval_of

if TYPE_CHECKING:
    from tests.conftest import Programs

BUILD: dict[str, Any] = MACHINE | {"package": "fedcba9876543210", "versions": {"unsnarl": "1.0"}}
JITTER = (0.98, 1.0, 1.03, 0.99, 1.01, 1.02, 0.97, 1.0)


def rounds_of(after: float, jitter: tuple[float, ...] = JITTER) -> list[dict[str, float]]:
    """Return rounds in which the later build needs ``after`` times as long as the earlier."""
    return [
        {"before1": 100 * noise, "after1": 100 * after, "before2": 100.0, "after2": 100 * after * noise}
        for noise in jitter
    ]


@pytest.mark.parametrize(("after", "verdict"), [(1.0, SAME), (1.01, SAME), (1.5, SLOWER), (0.7, FASTER)])
def test_a_difference_counts_outside_the_noise_only(after: float, verdict: str) -> None:
    found = judge(rounds_of(after))
    assert found is not None
    assert found.verdict == verdict
    assert found.ratio.median == pytest.approx(after, rel=0.03)
    assert found.ratio.low <= found.ratio.median <= found.ratio.high


def test_a_ratio_within_a_builds_own_noise_is_the_same() -> None:
    ratio, calm = Interval(1.1, 1.05, 1.15), Interval(1.0, 0.99, 1.01)
    assert judgement.verdict(ratio, calm, calm) == SLOWER
    assert judgement.verdict(ratio, calm, Interval(1.02, 0.9, 1.2)) == SAME
    assert judgement.verdict(ratio, Interval(1.02, 0.9, 1.2), calm) == SAME
    # Noise that happens to lie above 1 does not make a ratio of 1 faster.
    assert judgement.verdict(Interval(1.0, 0.99, 1.01), Interval(1.1, 1.05, 1.2), calm) == SAME


def test_few_rounds_are_not_judged() -> None:
    found = judge(rounds_of(2.0)[:4])
    assert found is not None
    assert found.verdict == TOO_FEW


def test_a_round_with_a_failed_run_is_left_out() -> None:
    rounds = rounds_of(1.0)
    del rounds[0]["after2"]
    found = judge(rounds)
    assert found is not None
    assert found.rounds == len(rounds) - 1
    assert judge([{"before1": 1.0}]) is None


def test_the_interval_is_that_of_all_comparisons() -> None:
    assert judgement.interval(JITTER)[1:] == interval_of(JITTER)
    assert judgement.interval([1.25] * 5) == (1.25, 1.25, 1.25)


def test_the_builds_alternate_and_neither_is_always_first() -> None:
    for number in range(2):
        sides = [run.rstrip("12") for run in judgement.order(number)]
        assert sorted(judgement.order(number)) == sorted(RUNS)
        assert sides[:2] == sides[2:]
    assert judgement.order(0)[0] != judgement.order(1)[0]


def test_the_page_shows_ratios_verdict_and_failures() -> None:
    scenes = {
        "Lock with, uncontended": {"unit": "ns", "rounds": rounds_of(1.5), "failures": []},
        "warm hg status": {"unit": "ms", "rounds": [], "failures": ["round 0, after1: exit status 1"]},
    }
    builds = {"before": BUILD | {"label": "abc"}, "after": BUILD | {"label": "def", "package": "0", "cores": 4}}
    text = page.page({"builds": builds, "scenes": scenes})
    lines = text.splitlines()
    assert any(line.startswith("| Lock with, uncontended, ns |") and line.endswith("| 8 | slower |") for line in lines)
    assert any(line.startswith("| warm hg status, ms |") and line.endswith("| no figures |") for line in lines)
    assert "- warm hg status, round 0, after1: exit status 1" in text
    assert "**Not only unsnarl differs**: number of cores." in text
    assert "same build" not in text


def test_a_command_is_measured_that_both_environments_have(tmp_path: Any) -> None:
    for side, names in {"one": ("unsnarl", "hg", "pip"), "two": ("unsnarl", "pip")}.items():
        (tmp_path / side).mkdir()
        for name in names:
            (tmp_path / side / name).touch()
    pythons = {"before": str(tmp_path / "one" / "python"), "after": str(tmp_path / "two" / "python")}
    assert warm_command.choose(pythons) == ("pip", "--version")
    assert warm_command.choose({"before": pythons["before"], "after": pythons["before"]}) == ("hg", "status")
    (tmp_path / "two" / "unsnarl").unlink()
    assert warm_command.choose(pythons) is None


@pytest.mark.parametrize(
    "scene",
    [pytest.param(name, marks=[pytest.mark.needs_gil] if name.startswith("gil") else []) for name in measured.SCENES],
)
def test_each_scene_prints_its_figure(programs: "Programs", scene: str) -> None:
    outcome = programs.python("-P", measured.__file__, scene)
    assert outcome.status == 0, outcome.complaint
    assert json.loads(outcome.stdout)["ns"] > 0
