"""The measurements of the primitives: every scene has a figure for unsnarl, and the page shows all scenes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import machine
from bench.primitives import __main__ as runner
from bench.primitives import contended, crowd, footprint, page, uncontended
from bench.primitives.scene import OURS, RATE, STANDARD, Scene


def test_every_uncontended_scene_has_our_figure() -> None:
    scenes = uncontended.scenes()
    assert len(scenes) == len(uncontended.STATEMENTS) + len(uncontended.ASYNC_STATEMENTS)
    for scene in scenes:
        assert {OURS, STANDARD} <= scene.runs.keys(), scene.name


@pytest.mark.parametrize("name", list(contended.PROGRAMS))
def test_programs_between_threads_come_to_an_end(name: str) -> None:
    import unsnarl

    assert contended.PROGRAMS[name][0](unsnarl, 5) > 0


@pytest.mark.parametrize("label", list(crowd.PROGRAMS))
def test_programs_of_a_crowd_come_to_an_end(label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import unsnarl

    for size in ("BLOCKS", "ITEMS", "ROUNDS"):
        monkeypatch.setattr(crowd, size, 8)
    name, program, bound = crowd.PROGRAMS[label]
    assert program(name, unsnarl, 2, *bound) > 0


def test_a_figure_of_memory() -> None:
    assert footprint.bytes_each("unsnarl", "Event()") > 0


def kept(goal: float | None, ours: float, theirs: float) -> dict[str, Any]:
    scene = Scene("scene", RATE, {}, goal)
    return {
        "unit": scene.unit.name,
        "more_is_better": scene.unit.more_is_better,
        "goal": goal,
        "ceiling": None,
        "against": [STANDARD],
        "pairs": [{OURS: ours, STANDARD: theirs}] * 3,
    }


@pytest.mark.parametrize(("ours", "verdict"), [(300.0, "met"), (100.0, "**missed**")])
def test_verdicts_come_from_the_pairs(ours: float, verdict: str) -> None:
    assert page.verdict(kept(2, ours, 100.0))[2] == verdict


def test_the_pages_are_what_their_results_say() -> None:
    root = Path(page.__file__).parents[2]
    for results in sorted((root / "bench" / "results").glob("primitives-*.json")):
        text = (root / "docs" / "results" / f"{results.stem}.md").read_text()
        assert text == page.page(json.loads(results.read_text()), str(results.relative_to(root)))


@pytest.mark.parametrize(("goal", "under_a_jit"), [(5, 1), (1 / 1.1, 1 / 1.1), (None, None)])
def test_under_a_jit_no_goal_is_more_than_to_be_no_slower(
    goal: float | None, under_a_jit: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene("queue", RATE, {}, goal)
    assert runner.entry(scene, [])["goal"] == goal
    monkeypatch.setattr(runner, "IS_COMPILED", True)
    assert runner.entry(scene, [])["goal"] == under_a_jit


def test_a_root_without_git_has_the_commit_from_the_script_that_runs_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSNARL_SOURCES", "abc123 with changes")
    assert machine.sources() == "abc123 with changes"
