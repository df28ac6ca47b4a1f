"""A way is faster or slower only beyond noise; a command that does not end or varies is refused."""

import json
import statistics

import pytest

from unsnarl.cli import doctor
from unsnarl.cli.failure import CommandError
from unsnarl.doctor import comparison, packing, view
from unsnarl.doctor.diagnosis import Diagnosis, Effect, conclude, effect_of, ways
from unsnarl.doctor.forecast import Forecast
from unsnarl.doctor.packing import Packed
from unsnarl.doctor.trial import Trial
from unsnarl.trace.findings.finding import BY_DOCTOR, Finding, Remedy


def trials(*walls: float) -> list[Trial]:
    return [Trial(0, wall, wall, 1, "") for wall in walls]


@pytest.mark.parametrize(
    ("walls", "verdict"),
    [
        ((0.5,) * 7, "faster"),
        ((2.0,) * 7, "slower"),
        ((0.5,) * 5, "too few to judge"),
        ((0.5, 0.6, 1.5) * 3, "too few to judge"),
        ((0.97, 1.02) * 4, "same"),
        ((0.97,) * 9, "same"),
    ],
)
def test_a_verdict_needs_a_difference_beyond_noise(walls: tuple[float, ...], verdict: str) -> None:
    found = comparison.outcome("way", "", trials(*walls), trials(*[1.0] * len(walls)), questions=2)
    assert found.verdict == verdict
    assert found.ratio == pytest.approx(1 / statistics.median(walls), rel=0.01)


def test_a_round_that_a_way_misses_is_no_pair() -> None:
    (first, second), stock = trials(0.5, 0.6), trials(9.0, 1.0, 1.2, 7.0)
    found = comparison.outcome("warm", "", [None, first, second], stock)
    assert (found.runs, found.ratio) == (2, 2.0)


def diagnosis(*ways: tuple[str, float]) -> Diagnosis:
    stock = trials(*[1.0] * 8)
    outcomes = [comparison.outcome(name, f"unsnarl {name}", trials(*[wall] * 8), stock) for name, wall in ways]
    return Diagnosis(["app.py"], 0, [comparison.outcome("stock", "python", stock, stock), *outcomes])


def test_without_a_gil_the_scheduler_is_no_way_and_the_report_says_why() -> None:
    assert [way.name for way in ways(["app.py"], can_schedule=True)] == ["stock", "scheduler", "native primitives"]
    stock, native = ways(["app.py"], can_schedule=False)
    assert (stock.name, native.name) == ("stock", "native primitives")
    assert native.settings is not None
    assert (native.settings.patch, native.settings.scheduler) == (True, False)
    found = diagnosis(("native primitives", 1.0))
    assert "not tried" not in view.text(found)
    found.left_out = "this is a free-threaded build"
    assert "the scheduler was not tried and nothing was traced: this is a free-threaded build\n" in view.text(
        found, 200
    )
    assert json.loads(view.data(found))["left_out"] == found.left_out


def test_what_helps_is_named_with_its_factor() -> None:
    found = diagnosis(("run", 0.5), ("patch", 1.0))
    conclude(found)
    assert found.helps
    assert found.verdict == ["run helps: 2.00 × as fast as stock. `unsnarl run`"]


def test_what_only_shortens_waits_helps_too() -> None:
    found = diagnosis(("run", 1.0))
    found.effects = [Effect("health", "scheduler", 5e6, 5e4, 9, helps=True)]
    conclude(found)
    assert found.helps
    assert "5.00 ms to 50.0 µs" in found.verdict[0]


def test_an_effect_on_a_thread_needs_pairs_too() -> None:
    assert effect_of("health", [(5e6, 5e4)] * 2, 1).helps is None
    assert effect_of("health", [(5e6, 5e4)] * 9, 1).helps
    assert effect_of("health", [(5e6, 4e6)] * 9, 1).helps is False
    assert effect_of("health", [(5e6, 5e4), (5e4, 5e6)] * 20, 1).helps is None
    found = diagnosis(("run", 1.0))
    found.effects = [effect_of("health", [(5e6, 5e4)] * 2, 1)]
    conclude(found)
    assert not found.helps
    open_one = "scheduler for thread `health` (its mean wait for the GIL 5.00 ms → 50.0 µs, 2 pairs of traced runs)"
    assert found.verdict[0].startswith(f"Too few runs to judge: {open_one}.")


def test_an_open_question_is_no_advice() -> None:
    found = diagnosis(("run", 1.0))
    found.outcomes[1] = comparison.outcome("run", "", trials(0.5, 0.5), trials(1.0, 1.0))
    conclude(found)
    assert not found.helps
    assert found.verdict[0].startswith("Too few runs to judge: run (2.00 ×, 2 runs).")


def test_nothing_is_said_not_to_help_while_a_way_is_open() -> None:
    found = diagnosis(("run", 1.0))
    found.outcomes[1] = comparison.outcome("run", "", trials(0.5, 0.5), trials(1.0, 1.0))
    found.findings = [Finding("x", "fine", "x", remedy=Remedy("unsnarl will not help here: the GIL is full"))]
    conclude(found)
    assert [line.partition(":")[0] for line in found.verdict] == ["Too few runs to judge"]


def test_advice_for_the_program_is_no_reason_why_unsnarl_does_not_help() -> None:
    found = diagnosis(("run", 1.0))
    found.findings = [
        Finding("slow-start", "notable", "x", remedy=Remedy("import modules where they are used")),
        Finding("no-gil-contention", "fine", "x", remedy=Remedy("unsnarl's scheduler will not help here: no waits")),
    ]
    conclude(found)
    assert found.verdict == ["unsnarl will not help here: no waits"]


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


def test_a_gain_where_nobody_waits_is_taken_for_noise() -> None:
    found = diagnosis(("scheduler", 0.5), ("warm", 0.1))
    found.findings = [Finding("no-gil-contention", "fine", "x")]
    conclude(found)
    assert [outcome.verdict for outcome in found.outcomes[1:]] == ["same", "faster"]
    assert found.verdict[0].startswith("scheduler: 2.00 × as fast as stock, which is noise")
    assert found.verdict[1].startswith("warm helps")


def test_a_gain_beside_contention_is_believed() -> None:
    found = diagnosis(("scheduler", 0.5))
    found.findings = [Finding("no-gil-contention", "fine", "x"), Finding("convoy", "severe", "of another process")]
    conclude(found)
    assert found.outcomes[1].verdict == "faster"


def test_runs_that_differ_much_are_said_to() -> None:
    found = diagnosis(("scheduler", 1.0))
    stock = trials(1.0, 1.0, 1.0)
    found.outcomes.append(comparison.outcome("warm", "", trials(0.1, 0.5, 0.9), stock))
    conclude(found)
    assert found.verdict[-1].startswith("The runs differ much among themselves (warm)")


def test_each_remedy_stands_with_what_it_should_save_and_what_it_did() -> None:
    found = diagnosis(("warm", 0.5))
    remedy = Remedy("be warm", "unsnarl warm", helps=True, saves_ns=2_000_000)
    found.findings = [Finding("slow-start", "notable", "x", remedy=remedy)]
    assert "→ be warm (unsnarl warm: predicted to save 2.00 ms; measured: 2.00 × (faster))" in view.text(found, 200)


def test_the_doctor_does_not_send_to_itself() -> None:
    found = diagnosis(("native primitives", 0.5))
    remedy = Remedy(f"native conditions: {BY_DOCTOR}", "unsnarl run --patch", helps=True)
    found.findings = [Finding("futex-storm", "notable", "x", remedy=remedy)]
    assert "→ native conditions (unsnarl run --patch: measured: 2.00 × (faster))" in view.text(found, 200)


def test_a_pack_stands_with_its_own_prediction_or_why_there_is_none() -> None:
    found = diagnosis(("pack", 0.8))
    cold = Remedy("a pack", "unsnarl pack", helps=True)
    found.findings = [Finding("slow-start", "notable", "x", alternative=cold)]
    found.pack = Packed(["./hg"], forecast=Forecast(4_000_000, 0, -1_000_000))
    predicted = "predicted to save 3.00 ms (4.00 ms finding and reading modules)"
    assert f"→ a pack (unsnarl pack: {predicted}; measured: 1.25 × (faster))" in view.text(found, 200)
    assert json.loads(view.data(found))["pack"] == {
        "saves_ns": 3_000_000,
        "finding_ns": 4_000_000,
        "collecting_ns": 0,
        "ending_ns": -1_000_000,
        "reason": "",
    }
    found.outcomes, found.pack = found.outcomes[:1], Packed([], reason="it is no script")
    assert "→ a pack (unsnarl pack: not measured: it is no script)" in view.text(found, 200)


def test_the_table_is_whole_at_eighty_columns_and_uses_the_room_at_two_hundred() -> None:
    found = diagnosis(("scheduler", 0.5), ("native primitives", 1.0))
    stock = trials(*[123.4] * 8)
    found.outcomes.append(comparison.outcome("native primitives", "unsnarl run --patch", trials(112.2, 98.7), stock))
    found.outcomes.append(comparison.outcome("pack", "unsnarl pack", [Trial(-11, 99.9, 99.9, 123_456, "")], stock))
    found.findings = [Finding("long-hold", "severe", "a " * 90, remedy=Remedy("word " * 40))]
    conclude(found)
    narrow, wide = view.text(found, 80), view.text(found, 200)
    assert max(map(len, narrow.splitlines())) <= 80
    assert "(too few to judge)" in narrow
    assert "ended with status -11" in narrow
    assert "switches" not in narrow
    assert "switches" in wide
    assert "middle half" in wide
    assert "123,456" in wide


@pytest.mark.parametrize(
    ("stock_s", "target", "said"), [(1.0, (), "only a console script"), (11.0, ("tool",), "more than 10 s")]
)
def test_no_pack_is_made_where_it_is_of_no_use(stock_s: float, target: tuple[str, ...], said: str) -> None:
    assert said in packing.launcher(packing.Packable(target), "/absent", {}, 1.0, stock_s).reason


@pytest.mark.parametrize("words", [["--runs", "1", "a"], ["--runs", "x", "a"], ["--what", "a"], ["--limit"], []])
def test_nonsense_is_refused(words: list[str]) -> None:
    with pytest.raises(CommandError):
        doctor.parse(words)


def test_options() -> None:
    request, run = doctor.parse(["--runs=3", "--seconds", "9", "--json", "--", "hg", "status", "--json"])
    assert (request.runs, request.budget_s, request.as_json) == (3, 9.0, True)
    assert (run.kind, run.target, run.arguments) == ("command", "hg", ["status", "--json"])
