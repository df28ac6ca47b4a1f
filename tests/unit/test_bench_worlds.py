"""The matrix of worlds: its verdicts, its page, and what a world leaves behind."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.worlds import page, plan, reasons, runner
from bench.worlds.verdict import GAIN, LOSS, NOISE, SAME, TOO_FEW, judge
from bench.worlds.world import Unavailable, World, inhabited

STEADY = [100.0, 101.0, 99.0, 100.5, 99.5]
SHAKY = [70.0, 130.0, 100.0, 60.0, 140.0]


@pytest.mark.parametrize(
    ("stock", "again", "variant", "more_is_better", "verdict"),
    [
        (STEADY, STEADY, [60.0] * 5, True, LOSS),
        (STEADY, STEADY, [150.0] * 5, True, GAIN),
        (STEADY, STEADY, [100.0] * 5, True, SAME),
        (STEADY, STEADY, [150.0] * 5, False, LOSS),
        (STEADY, STEADY, [60.0] * 5, False, GAIN),
        (STEADY, SHAKY, [80.0] * 5, True, NOISE),
        (STEADY[:4], STEADY[:4], [60.0] * 4, True, TOO_FEW),
    ],
)
def test_a_variant_is_judged_beside_the_noise_of_stock(
    stock: list[float], again: list[float], variant: list[float], more_is_better: bool, verdict: str
) -> None:
    judged = judge(stock, again, variant, more_is_better=more_is_better)
    assert judged is not None
    assert judged.verdict == verdict


def test_what_has_no_pair_has_no_verdict() -> None:
    assert judge([], [], [], more_is_better=True) is None


def result(case: plan.Case, figures: dict[str, list[float]]) -> dict[str, Any]:
    runs = [
        {"pair": pair, "variant": variant, "figures": {"rate_per_s": rate, "cpu_us": 1.0, "switches": 0.5}}
        for variant, rates in figures.items()
        for pair, rate in enumerate(rates)
    ]
    machine = {"cpu": "a processor", "cores": 2, "kernel": "6", "libc": "glibc", "commit": "abc", "taken": "today"}
    python = {"implementation": "CPython", "version": "3.13.0"}
    futexes = dict.fromkeys(figures, 1.0)
    return {"case": case._asdict(), "runs": runs, "futexes": futexes, "machine": machine | {"python": python}}


def test_the_page_shows_losses_first_and_runs_without_a_result_last() -> None:
    case = plan.Case("a case", ("some.py",), (plan.STOCK, plan.AGAIN, plan.RUN))
    lost = result(case, {plan.STOCK: STEADY, plan.AGAIN: STEADY, plan.RUN: [50.0] * 5})
    lost["runs"].append({"pair": 5, "variant": plan.RUN, "failed": "exit status 1: no"})
    text = page.page({"idle": {"cases": {"a case": lost}}})
    losses, rest = text.index("## Losses"), text.index("## Idle machine")
    assert losses < text.index("idle machine: a case, run") < rest
    assert "0.50 (" in text[losses:rest]
    assert text.rstrip().endswith("- idle machine: a case, run: exit status 1: no")


def test_the_page_says_how_often_the_other_threads_ran() -> None:
    case = plan.Case("a case", ("some.py",), (plan.STOCK, plan.AGAIN, plan.RUN))
    one = result(case, {plan.STOCK: STEADY, plan.AGAIN: STEADY, plan.RUN: STEADY})
    assert "other threads" not in page.page({"idle": {"cases": {"a case": one}}})
    for others_per_s, words in [(3_000.0, "5.0 × as often"), (900_000.0, "1,500 × as often")]:
        for run in one["runs"]:
            run["figures"]["others_per_s"] = others_per_s if run["variant"] == plan.RUN else 600.0
        assert f"| a case, run; the other threads {words} |" in page.page({"idle": {"cases": {"a case": one}}})


def test_a_loss_without_a_known_reason_comes_before_those_with_one() -> None:
    cases = {}
    for name, rate in [("main computes, 4 threads saturate", 10.0), ("a case", 50.0)]:
        case = plan.Case(name, ("some.py",), (plan.STOCK, plan.AGAIN, plan.RUN))
        cases[name] = result(case, {plan.STOCK: STEADY, plan.AGAIN: STEADY, plan.RUN: [rate] * 5})
    losses, _, rest = page.page({"idle": {"cases": cases}}).partition("## Idle machine")
    rows = [line.split(" | ")[:2] for line in losses.splitlines() if line.startswith("| idle machine: ")]
    assert rows == [
        ["| idle machine: a case, run", "**none known**"],
        ["| idle machine: main computes, 4 threads saturate, run", "1"],
    ]
    assert f"\n1. {reasons.REASONS[0].text}\n" in losses
    assert rest


def test_every_reason_is_one_of_a_case_that_is_measured() -> None:
    assert {reasons.reason_of(case.name) for case in plan.cases()} == {None, *reasons.REASONS}


def test_a_page_names_every_computer_of_its_results() -> None:
    intel, amd = ({"cpu": cpu, "cores": 2, "kernel": "6", "libc": "glibc 2.36"} for cpu in ("Intel", "AMD"))
    assert page.computers([intel, intel]) == "Intel, 2 cores, Linux 6, glibc 2.36"
    named = page.computers([amd, intel, intel])
    assert named.startswith("Intel, 2 cores, Linux 6, glibc 2.36 (2 of 3 measurements); AMD")


def test_a_page_without_a_loss_says_so() -> None:
    case = plan.Case("a case", ("some.py",), (plan.STOCK, plan.AGAIN, plan.RUN))
    same = result(case, {plan.STOCK: STEADY, plan.AGAIN: STEADY, plan.RUN: STEADY})
    assert "## Losses\n\nNone." in page.page({"idle": {"cases": {"a case": same}}})


def test_every_case_runs_stock_twice_by_the_same_command() -> None:
    for case in plan.cases():
        first, second, *others = case.variants
        assert case.command(first) == case.command(second)
        assert (
            others and all(case.command(variant) != case.command(first) for variant in others)
        ) or case.name.endswith("a child's -c pass")


def test_a_world_with_busy_processes_ends_them() -> None:
    def children() -> set[str]:
        return {*Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()}

    before = children()  # as the tracker of resources of multiprocessing, which other tests have started
    with inhabited(World("busy", "busy", busy=2)) as prefix:
        busy = children() - before
        assert len(busy) == 2
        assert subprocess.run([*prefix, "true"], check=False).returncode == 0
    assert not busy & children()


def test_a_world_of_one_processor_has_one() -> None:
    with inhabited(World("one", "one processor", processors=1)) as prefix:
        code = "import os; print(len(os.sched_getaffinity(0)))"
        done = subprocess.run([*prefix, sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_a_control_group_is_removed() -> None:
    try:
        with inhabited(World("half", "half", quota=0.5)) as prefix:
            group = Path(prefix[-1]).parent
            assert subprocess.run([*prefix, "true"], check=False).returncode == 0
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert not group.exists()


def test_a_run_that_fails_says_its_last_words() -> None:
    with pytest.raises(runner.Failed, match=r"^exit status 3: it failed$"):
        runner.run([sys.executable, "-c", "import sys; print('it failed', file=sys.stderr); sys.exit(3)"], 60)
    with pytest.raises(runner.Failed, match="printed no figures"):
        runner.run(["true"], 60)
    with pytest.raises(runner.Failed, match="no result within"):
        runner.run([sys.executable, "-c", "import signal; signal.pause()"], 0.2)


def test_a_program_of_the_matrix_has_figures() -> None:
    program = str(plan.PROGRAMS / "shared.py")
    figures = runner.run([sys.executable, program, "counter", "2", "100"], 60)
    assert figures["rate_per_s"] > 0
    assert figures["cpu_us"] > 0
    assert figures["switches"] >= 0


def test_a_server_of_the_matrix_answers_its_load() -> None:
    program = str(plan.PROGRAMS / "servers.py")
    figures = runner.run([sys.executable, program, "stdlib", "4", "0.3"], 60)
    assert figures["rate_per_s"] > 0
    assert figures["p99_us"] >= figures["p50_us"] > 0


def test_the_list_names_every_case() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.worlds", "--list", "--only", "logging*"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.stdout.splitlines() == [c.name for c in plan.cases() if c.name.startswith("logging")]
