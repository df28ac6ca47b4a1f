"""The alternatives: each program answers and counts its work, and the page puts what is better than unsnarl first."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from bench.alternatives import page, ways
from bench.alternatives.__main__ import asked, main, run_once

ROOT = Path(__file__).resolve().parents[2]
HERE = [way for way in ways.WAYS if way.interpreter == ways.HERE and way.name != ways.AGAIN]
MACHINE = {"cpu": "a processor", "cores": 2, "kernel": "6.1", "taken": "2026-01-02T03:04:05", "commit": "abc"}


@pytest.mark.parametrize("way", HERE, ids=lambda way: way.name)
def test_a_program_answers_while_the_others_compute(way: ways.Way) -> None:
    if way.program == "interpreters" and sys.version_info < (3, 13):
        pytest.skip("CPython has no such sub-interpreters before 3.13")
    if way.program == "greenlets" and find_spec("gevent") is None:
        pytest.skip("gevent is not installed")
    figures = run_once(way, [sys.executable], 2, 0.3)
    assert figures[page.ANSWERS] > 0
    assert figures[page.WORK] > 0


def test_an_interpreter_says_what_it_is() -> None:
    found = asked([sys.executable])
    assert (found["name"], found["version"]) == (sys.implementation.name.replace("cp", "CP"), sys.version.split()[0])


def document(**answers: float) -> dict[str, Any]:
    """Return a run in which the ways differ by their answers alone."""
    runs = [
        {"pair": pair, "hogs": hogs, "way": name, "figures": {page.ANSWERS: rate, page.P99: 10.0, page.WORK: 5.0}}
        for pair in range(7)
        for hogs in (0, 2)
        for name, rate in answers.items()
    ]
    here = {"name": "CPython", "version": "3.13.0", "optimized": False, "gil": True}
    return {"machine": MACHINE, "load": [0.5, 1.0], "interpreters": {ways.HERE: here}, "pairs": 7, "runs": runs}


def test_what_is_better_than_unsnarl_comes_first() -> None:
    shown = page.page(document(**{ways.UNSNARL: 100.0, ways.STOCK: 10.0, "processes": 200.0}))
    better = shown.split("## Where an alternative is better\n")[1].split("##")[0]
    assert "- processes: more answers with none and 2 computing\n" in better
    assert "stock" not in better
    assert "no such interpreter: free-threaded CPython, PyPy." in better
    assert "| processes | **2.00 (2.00 – 2.00)** |" in shown
    assert "| stock | 0.10 (0.10 – 0.10) |" in shown


def test_where_nothing_is_better_the_page_says_so() -> None:
    assert "Nowhere in this run." in page.page(document(**{ways.UNSNARL: 100.0, ways.STOCK: 10.0}))


def test_the_kept_page_is_rendered_from_the_kept_runs() -> None:
    kept = ROOT / "docs" / "results" / "data" / "alternatives.json"
    rendered = page.page(json.loads(kept.read_text(encoding="utf-8")))
    assert rendered == (ROOT / "docs" / "results" / "alternatives.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--pairs", "0", "--out", "x"],
        ["--seconds", "x"],
        ["--wrong"],
        ["--render", "/no/such"],
        ["--pypy", "/no/such/pypy", "--out", "x"],
    ],
)
def test_bad_input_gets_one_clear_line(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status: object = main(words)
    except SystemExit as end:
        status = end.code
    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 2
