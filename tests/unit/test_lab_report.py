"""Kept results become medians, ratios, exponents, tables and pages: no figure from elsewhere."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from unsnarl.lab import page, plots, tables
from unsnarl.lab.analysis import Outcome
from unsnarl.lab.experiment import ANYWHERE, Case, Experiment, Figure
from unsnarl.lab.fit import exponent
from unsnarl.lab.store import Results, StoreError, read
from unsnarl.lab.variants import PYPY, SCHEDULER, STOCK

MACHINE: dict[str, Any] = {
    "python": {
        "version": "3.13.0",
        "implementation": "CPython",
        "compiler": "GCC <14>",
        "pgo": False,
        "lto": True,
        "shared": True,
    },
    "scheduler": "0123",
    "cpu": "a processor & more",
    "cores": 2,
    "architecture": "x86_64",
    "kernel": "6.1",
    "libc": "glibc 2.40",
    "taken": "2026-01-01T00:00:00+00:00",
}
SIZES = (100, 200, 400)
CASES = tuple(Case(f"start, n = {n}", series="start", size=n, confinement=ANYWHERE) for n in SIZES)
TRACED = Case("calls", is_traced=True)
EXPERIMENT = Experiment(
    "squares", "002", "Squares", "Why?", "squares.py", (Figure("elapsed_s", "time", "s"),), (STOCK, SCHEDULER, PYPY),
    (*CASES, TRACED), CASES, reading="Read <this>.",
)  # fmt: skip


def results_in(folder: Path, pairs: int = 3) -> Results:
    """Keep runs of exact powers: stock grows with the square, the scheduler linearly."""
    results = Results(folder, EXPERIMENT, MACHINE)
    results.note({"pypy": "no PyPy on PATH"}, (*CASES, TRACED), "unsnarl lab run squares")
    for pair in range(pairs):
        for case, n in zip(CASES, SIZES, strict=True):
            results.add(case.name, "stock", pair, {"elapsed_s": (n / 100) ** 2 * (1 + pair / 100)})
            results.add(case.name, "scheduler", pair, {"elapsed_s": n / 1000 * (1 + pair / 100)})
    results.add(TRACED.name, "stock", 0, {"calls.all": 12, "calls.futex": 9, "calls.read": 3})
    results.add(TRACED.name, "scheduler", 0, {"calls.all": 4, "calls.futex": 0, "calls.read": 4})
    results.add(CASES[0].name, "scheduler", pairs, "exit status 1: out of | luck")
    results.write()
    return results


@pytest.fixture
def outcome(tmp_path: Path) -> Outcome:
    return Outcome(read(results_in(tmp_path).path))


def test_medians_ratios_and_exponents(outcome: Outcome) -> None:
    assert [variant["name"] for variant in outcome.variants()] == ["stock", "scheduler"]
    median = outcome.median(CASES[1].name, "stock", "elapsed_s")
    assert median is not None
    assert (median.value, median.low, median.high, median.runs) == pytest.approx((4.04, 4.0, 4.08, 3))
    ratio = outcome.ratio(CASES[1].name, "scheduler", "elapsed_s")
    assert ratio is not None
    assert ratio.median == pytest.approx(0.05)
    assert not ratio.is_noise()
    assert outcome.exponent("start", "stock", "elapsed_s") == pytest.approx(2)
    assert outcome.exponent("start", "scheduler", "elapsed_s") == pytest.approx(1)
    assert outcome.exponent("start", "pypy", "elapsed_s") is None
    assert outcome.pairs() == (1, 4)
    assert outcome.failures() == ["start, n = 100, scheduler: exit status 1: out of | luck"]


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_exact_powers(power: float) -> None:
    assert exponent({n: 3.0 * n**power for n in SIZES}) == pytest.approx(power)


@pytest.mark.parametrize("times", [{}, {1: 1.0, 2: 2.0}, {1: 0.0, 2: 2.0, 3: 3.0}])
def test_too_few_sizes_for_an_exponent(times: dict[int, float]) -> None:
    assert exponent(times) is None


def test_the_tables(outcome: Outcome) -> None:
    times, growth, calls = tables.tables_of(outcome)
    assert times.head == ("", "stock", "scheduler")
    assert times.rows[1] == ("start, n = 200", "4.04 ±1%", "0.202 ±1% (0.05× ±0%)")
    assert growth.rows == [("start", "2.00 (16.0× for 4.00× the size)", "1.00 (4.00× for 4.00× the size)")]
    assert calls.rows == [("all", "12", "4"), ("futex", "9", "0"), ("read", "3", "4")]
    assert tables.markdown(calls).splitlines()[1] == "| --- | ---: | ---: |"
    assert tables.absences(outcome)[0] == "not there: pypy: no PyPy on PATH"


def test_a_difference_within_the_noise_is_called_so(tmp_path: Path) -> None:
    results = Results(tmp_path, EXPERIMENT, MACHINE)
    results.note({}, CASES, "")
    for pair, value in enumerate((0.9, 1.1, 1.0)):
        results.add(CASES[0].name, "stock", pair, {"elapsed_s": 1.0})
        results.add(CASES[0].name, "scheduler", pair, {"elapsed_s": value})
    results.write()
    (times,) = tables.tables_of(Outcome(read(results.path)))
    assert "within the noise" in times.rows[0][2]
    assert "≈" in times.rows[0][2]


class Ids(HTMLParser):
    """Collects what a page names and what it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.sources: list[str] = []

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.sources += [value for name, value in attrs if name in ("src", "href") and value]


def test_the_report_is_complete_and_repeatable(tmp_path: Path) -> None:
    results_in(tmp_path)
    written = page.write(tmp_path, page.load(tmp_path), "unsnarl lab report .")
    before = {path: path.read_bytes() for path in written}
    assert page.write(tmp_path, page.load(tmp_path), "unsnarl lab report .") == written
    assert {path: path.read_bytes() for path in written} == before
    text = (tmp_path / page.HTML).read_text()
    ids = Ids()
    ids.feed(text)
    assert len(ids.ids) == len(set(ids.ids))
    assert all(source.startswith("#") for source in ids.sources), "the page must open without a network"
    assert "a processor &amp; more" in text
    assert "Read &lt;this&gt;." in text
    markdown = (tmp_path / page.MARKDOWN).read_text()
    assert "    unsnarl lab run squares\n    unsnarl lab report .\n" in markdown
    for name in re.findall(r"!\[[^]]*]\(([^)]*)\)", markdown):
        assert (tmp_path / name).read_text().startswith("<svg")
    summary = json.loads((tmp_path / page.SUMMARY).read_text())
    assert summary[0]["exponents"]["start"]["stock"] == pytest.approx(2)


def test_plots_are_drawn_where_matplotlib_is(outcome: Outcome) -> None:
    if not plots.is_available():
        pytest.skip("matplotlib is not installed: pip install '.[lab]'")
    (plot,) = plots.plots_of(outcome, "squares")
    assert plot.svg.count("<svg") == 1
    assert "stock, n^2.00" in plot.svg
    assert plot.svg == next(plots.plots_of(outcome, "squares")).svg


def test_no_plots_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "is_available", lambda: False)
    results_in(tmp_path)
    written = page.write(tmp_path, page.load(tmp_path), "")
    assert {path.name for path in written} == {page.MARKDOWN, page.HTML, page.SUMMARY}


def test_pairs_are_continued(tmp_path: Path) -> None:
    results_in(tmp_path, pairs=2)
    again = Results(tmp_path, EXPERIMENT, MACHINE)
    assert again.pairs_kept()[CASES[1].name] == 2


@pytest.mark.parametrize("what", ["python", "scheduler", "cpu", "cores"])
def test_other_circumstances_are_never_mixed_in(tmp_path: Path, what: str) -> None:
    results_in(tmp_path)
    python = {**MACHINE["python"], "compiler": "another"}
    other = {**MACHINE, what: python if what == "python" else "another"}
    with pytest.raises(StoreError, match=f"another {what}"):
        Results(tmp_path, EXPERIMENT, other)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"format": "other"}', '{"format": "unsnarl-lab-1", "runs": []}', "\0"]
)
def test_a_foreign_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "squares-cpython-3.13.0.json").write_text(content)
    with pytest.raises(StoreError, match=re.escape("squares-cpython-3.13.0.json")):
        page.load(tmp_path)
    with pytest.raises(StoreError):
        Results(tmp_path, EXPERIMENT, MACHINE)
