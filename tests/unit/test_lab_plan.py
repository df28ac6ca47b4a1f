"""Experiments are complete data, and plans alternate their variants."""

from collections import Counter

import pytest

from unsnarl.lab.experiments import NAMED_ONLY, NAMES, experiment
from unsnarl.lab.presence import CHECKS
from unsnarl.lab.running.plan import planned, rotated
from unsnarl.lab.running.process import PROGRAMS
from unsnarl.statistics import FEWEST_SIZES

QUICK_EXPECTED_S = 110.0


@pytest.mark.parametrize("name", NAMES)
def test_an_experiment_says_all_about_itself(name: str) -> None:
    one = experiment(name)
    assert one.name == name
    assert all((one.source, one.title, one.question.endswith("?"), one.figures, one.variants, one.cases, one.quick))
    assert one.program == "" or (PROGRAMS / one.program).is_file()
    assert {need for variant in one.variants for need in variant.needs} <= CHECKS.keys()
    for cases in (one.cases, one.quick):
        names = Counter(case.name for case in cases)
        assert set(names.values()) == {1}
        assert all(one.variants[0] in one.variants_of(case) for case in cases)
        assert all((case.size is not None) == bool(case.series) for case in cases)


def test_an_unknown_experiment() -> None:
    with pytest.raises(KeyError):
        experiment("os")


def test_quick_runs_are_expected_to_end_in_time() -> None:
    every = [experiment(name) for name in NAMES if name not in NAMED_ONLY]
    runs = [case.expected_s * len(one.variants_of(case)) * one.quick_pairs for one in every for case in one.quick]
    assert sum(runs) < QUICK_EXPECTED_S


def test_the_sizes_of_the_documents() -> None:
    squares = experiment("squares").cases
    for program in ("start", "mutex", "semaphore"):
        for cores in ("all cores", "1 core"):
            series = [case for case in squares if case.series == f"{program}, {cores}"]
            ours = [case.size for case in series if case.variants and "scheduler" in case.variants]
            assert ours == [100, 200, 300, 400, 500, 600, 700, 800, 900]
            assert sum("pypy" in (case.variants or ()) for case in series) >= FEWEST_SIZES
    processes = experiment("processes").cases
    for program, sizes in (("start", list(range(10, 100, 10))), ("mutex", list(range(40, 400, 40)))):
        for cores in ("all cores", "1 core"):
            assert [case.size for case in processes if case.series == f"{program}, {cores}"] == sizes
        round_robin = {case.size for case in processes if case.series == f"{program}, all cores, SCHED_RR"}
        assert {sizes[0], sizes[-1]} <= round_robin
    assert {case.confinement.words() for case in squares} == {
        "all cores",
        "1 core",
        "all cores, SCHED_RR",
        "1 core, SCHED_RR",
    }


def test_variants_take_turns_and_kept_pairs_are_continued() -> None:
    one = experiment("convoy")
    case = one.cases[0]
    absent = {"pypy": "not there"}
    plan = list(planned(one, [case], "python", absent, pairs=2, pairs_kept={case.name: 3}))
    names = [variant.name for variant in one.variants if variant.name != "pypy"]
    assert [(item.pair, item.run.variant.name) for item in plan] == [
        *((3, name) for name in rotated(names, 3)),
        *((4, name) for name in rotated(names, 4)),
    ]
    assert [rotated("abc", by)[0] for by in range(4)] == ["a", "b", "c", "a"]
    assert rotated((), 2) == ()
