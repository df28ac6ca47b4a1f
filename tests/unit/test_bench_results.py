"""Results are read back, judged against their goals, and rendered without a figure typed by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as runner
from bench import goals, machine, plan, render
from bench.results import Result, load
from tests.unit.bench_machine import MACHINE
from unsnarl.demo.variant import STOCK, UNSNARL, VARIANTS
from unsnarl.statistics import exponent


def result_of(case: plan.Case, figures: dict[str, tuple[dict[str, float], ...]], gil: Any = None) -> dict[str, Any]:
    """Return the content of a case's file with the given figures by variant and pair."""
    runs = [
        {"pair": pair, "variant": variant, "figures": found, "gil": gil if variant == UNSNARL else None}
        for variant, by_pair in figures.items()
        for pair, found in enumerate(by_pair)
    ]
    what = case._asdict() | {"options": {}}
    return json.loads(json.dumps({"case": what, "machine": MACHINE, "runs": runs}))  # type: ignore[no-any-return]


def case_named(name: str) -> plan.Case:
    return next(case for case in plan.cases() if case.name == name)


def rates(*values: float) -> tuple[dict[str, float], ...]:
    return tuple({"requests_per_s": v, "work_per_s": v, "p50_us": 10.0, "p99_us": 20.0, "jain": 1.0} for v in values)


def test_every_case_has_a_name_of_its_own_and_a_program() -> None:
    names = [case.name for case in plan.cases()]
    assert len(names) == len(set(names))
    for case in plan.cases():
        assert (machine.ROOT / "bench" / "gil" / f"{case.program}.py").is_file()


def test_no_variant_is_always_first() -> None:
    assert {runner.rotated(VARIANTS, pair)[0] for pair in range(3)} == set(VARIANTS)
    assert sorted(runner.rotated(VARIANTS, 2)) == sorted(VARIANTS)


def test_figures_are_found_by_pair_and_failures_left_out() -> None:
    data = result_of(case_named("cpu-k4"), {STOCK: rates(10, 20), UNSNARL: rates(30, 40)})
    data["runs"].append({"pair": 2, "variant": UNSNARL, "failed": "no result within 60 s"})
    result = Result(data)
    assert result.values(STOCK, "work_per_s") == {0: 10, 1: 20}
    assert result.median(UNSNARL, "work_per_s") == 35
    assert result.failures(UNSNARL) == ["no result within 60 s"]
    ratio = result.ratio("work_per_s")
    assert ratio is not None
    assert (ratio.low, ratio.high) == (2.0, 3.0)


def test_the_schedulers_own_account_is_read_along_a_path() -> None:
    gil = {"classes": {"io": {"wait_p99_ns": 7000}}}
    result = Result(result_of(case_named("echo-udp-k1"), {STOCK: rates(1), UNSNARL: rates(2)}, gil))
    assert result.gil("classes", "io", "wait_p99_ns") == 7000
    assert result.gil("classes", "none", "wait_p99_ns") is None


def test_the_slowest_run_of_a_square_is_judged_by_itself(tmp_path: Path) -> None:
    by_luck = tuple({"elapsed_s": value} for value in (0.2, 8.0, 0.2))
    steady = tuple({"elapsed_s": value} for value in (0.1, 0.1, 0.1))
    data = result_of(case_named("squares-wakeup-n800"), {STOCK: by_luck, UNSNARL: steady})
    (tmp_path / "squares-wakeup-n800.json").write_text(json.dumps(data))
    measured = {goal.work: goal.measured for goal in goals.goals(load(tmp_path))}
    assert measured["squares, wakeup: speed at n = 800"].startswith("2.00×")
    assert measured["squares, wakeup: speed of the slowest run at n = 800"] == "80.0×"


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_of_exact_powers_is_found(power: float) -> None:
    assert exponent({n: 3.0 * n**power for n in (100, 200, 400, 800)}) == pytest.approx(power)


def test_two_sizes_are_too_few_for_an_exponent() -> None:
    assert exponent({100: 1.0, 200: 2.0}) is None


@pytest.mark.parametrize(
    ("mine", "verdict"),
    [((20.0, 21.0), goals.MET), ((8.0, 9.0), goals.MISSED), ((9.0, 11.0), goals.NOISE)],
)
def test_a_verdict_needs_the_pairs_to_agree(mine: tuple[float, float], verdict: str) -> None:
    result = Result(result_of(case_named("cpu-k1"), {STOCK: rates(10, 10), UNSNARL: rates(*mine)}))
    assert goals.ratio_at_least("work", 1.0, result.ratio("work_per_s")).verdict == verdict


def test_what_was_not_measured_is_neither_met_nor_missed() -> None:
    assert goals.at_least("work", 1.0, None).verdict == goals.UNMEASURED
    assert goals.ratio_at_most("work", 1.0, None).verdict == goals.UNMEASURED


def test_the_page_shows_each_goal_next_to_what_was_measured(tmp_path: Path) -> None:
    figures = {
        "echo-udp-k0": {STOCK: rates(1000, 1000), UNSNARL: rates(1000, 1000)},
        "echo-udp-k4": {STOCK: rates(10, 10), UNSNARL: rates(600, 620)},
    }
    for name, found in figures.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(result_of(case_named(name), found)))
    page = render.page(load(tmp_path))
    assert "| UDP echo next to 4: requests/s, of stock's without CPU threads | ≥ 50.0 % | 61.0 % | met |" in page
    assert "| UDP, k = 4 | 10.0 | - | 610 | - | 61.0× ±2% ? |" in page
    assert "3.13.0" in page
    assert "with LTO" in page


def test_a_run_without_a_result_is_on_the_page(tmp_path: Path) -> None:
    data = result_of(case_named("cpu-k1"), {STOCK: rates(10)})
    data["runs"].append({"pair": 0, "variant": UNSNARL, "failed": "exit status 1: boom"})
    (tmp_path / "cpu-k1.json").write_text(json.dumps(data))
    assert "- cpu-k1, unsnarl: exit status 1: boom" in render.page(load(tmp_path))


def test_pairs_are_added_to_the_same_scheduler_only(tmp_path: Path) -> None:
    path = tmp_path / "cpu-k1.json"
    data = result_of(case_named("cpu-k1"), {STOCK: rates(10), UNSNARL: rates(11)})
    path.write_text(json.dumps(data))
    assert len(runner.previous_runs(path, data["case"], MACHINE)) == 2
    assert runner.previous_runs(path, data["case"] | {"options": {"slice_ms": 1}}, MACHINE) == []
    assert runner.previous_runs(path, data["case"], MACHINE | {"scheduler": "another"}) == []
    assert runner.previous_runs(tmp_path / "none.json", data["case"], MACHINE) == []
