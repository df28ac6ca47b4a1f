"""Medians, ratios, exponents, tables and pages come from stored results alone."""

import errno
import json
import os
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from unsnarl.lab import experiments, published
from unsnarl.lab.experiment import ANYWHERE, Case, Experiment, Figure
from unsnarl.lab.machine import SAME, differences
from unsnarl.lab.results import beside, page, plots, tables
from unsnarl.lab.results.analysis import Outcome
from unsnarl.lab.results.store import Results, StoreError, held, read
from unsnarl.lab.variants import PYPY, SCHEDULER, STOCK
from unsnarl.statistics import exponent, power

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
    "package": "4567",
    "versions": {"unsnarl": "1.0", "gevent": "2.0"},
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
    """Store runs of exact powers: stock grows with the square, the scheduler linearly."""
    folder.mkdir(exist_ok=True)
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
    assert ratio.is_noise() is None
    assert outcome.growth("start", "stock", "elapsed_s") == pytest.approx((2, 0), abs=1e-6)
    assert outcome.growth("start", "scheduler", "elapsed_s") == pytest.approx((1, 0), abs=1e-6)
    assert outcome.growth("start", "pypy", "elapsed_s") is None
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
    assert times.title == "time, s (less is better; ?: fewer than 5 pairs, too few to judge)"
    assert times.rows[1] == ("start, n = 200", "4.04 ±1%", "0.202 ±1% (0.05× ±0% ?)")
    assert growth.rows == [("start", "2.00 ±0.00 (16.0× for 4.00× the size)", "1.00 ±0.00 (4.00× for 4.00× the size)")]
    assert calls.rows == [("all", "12", "4"), ("futex", "9", "0"), ("read", "3", "4")]
    assert tables.markdown(calls).splitlines()[1] == "| --- | ---: | ---: |"
    assert tables.absences(outcome)[0] == "missing: pypy: no PyPy on PATH"


def test_a_difference_within_the_noise_is_called_so(tmp_path: Path) -> None:
    results = Results(tmp_path, EXPERIMENT, MACHINE)
    results.note({}, CASES, "")
    for pair, value in enumerate((0.9, 1.1, 1.0, 1.05, 0.95)):
        results.add(CASES[0].name, "stock", pair, {"elapsed_s": 1.0})
        results.add(CASES[0].name, "scheduler", pair, {"elapsed_s": value})
    results.write()
    (times,) = tables.tables_of(Outcome(read(results.path)))
    assert "within the noise" in times.rows[0][2]
    assert "≈" in times.rows[0][2]
    assert times.title == "time, s (less is better)"


def test_fewer_than_five_pairs_are_not_judged(tmp_path: Path) -> None:
    """Fewer than five pairs show no difference and no noise: of three equal pairs, a quarter lie on one side of 1."""
    for pairs, is_noise in ((4, None), (5, False)):
        results_in(tmp_path / str(pairs), pairs)
        found = tables.summary(page.load(tmp_path / str(pairs))[0])["cases"][0]["figures"]["elapsed_s"]["scheduler"]
        assert found["ratio"]["pairs"] == pairs
        assert found["within_noise"] is is_noise


def test_what_took_too_long_says_so(tmp_path: Path) -> None:
    results = Results(tmp_path, EXPERIMENT, MACHINE)
    results.note({}, CASES, "")
    for pair in range(3):
        results.add(CASES[0].name, "scheduler", pair, {"elapsed_s": 1.0})
        results.add(CASES[1].name, "scheduler", pair, {"elapsed_s": 2.0})
        results.add(CASES[0].name, "stock", pair, {"elapsed_s": 1.0})
    results.add(CASES[1].name, "stock", 0, {"elapsed_s": 4.0})
    results.add(CASES[1].name, "stock", 1, "no result within 120 s", late_s=120.0)
    results.add(CASES[1].name, "stock", 2, "not run", late_s=120.0, is_spared=True)
    results.add(CASES[2].name, "stock", 0, "not run", late_s=120.0, is_spared=True)
    results.write()
    outcome = Outcome(read(results.path))
    (times,) = tables.tables_of(outcome)
    assert times.rows[0][1:] == ("1.00 ±0%", "1.00 ±0% (1.00× ±0% ?)")
    assert times.rows[1][1:] == ("4.00, but > 120 s in 1 of 2 runs", "2.00 ±0%"), "no ratio to half of the runs"
    assert times.rows[2][1:] == ("> 120 s", "-")
    assert list(outcome.curve("start", "stock", "elapsed_s")) == [100]
    summed_up = tables.summary(outcome)["cases"]
    assert [case["late"] for case in summed_up] == [
        {},
        {"stock": {"limit_s": 120.0, "runs": 1}},
        {"stock": {"limit_s": 120.0, "runs": 0}},
    ]


def test_what_took_too_long_is_known_for_later_pairs_and_larger_sizes(tmp_path: Path) -> None:
    results = Results(tmp_path, EXPERIMENT, MACHINE)
    results.note({}, CASES, "")
    results.add(CASES[1].name, "stock", 0, "no result within 120 s", late_s=120.0)
    results.write()
    again = Results(tmp_path, EXPERIMENT, MACHINE)
    assert [again.is_late(case, "stock") for case in CASES] == [False, True, True]
    assert not any(again.is_late(case, "scheduler") for case in CASES)
    assert not again.is_late(CASES[2]._replace(limit_s=240.0), "stock"), "more time is another question"
    assert not again.is_late(CASES[2]._replace(series="another"), "stock")


def test_what_is_spared_after_a_result_is_no_run(tmp_path: Path) -> None:
    results = Results(tmp_path, EXPERIMENT, MACHINE)
    results.note({}, CASES, "")
    results.add(CASES[1].name, "stock", 0, {"elapsed_s": 4.0})
    results.add(CASES[1].name, "stock", 1, "not run", late_s=120.0, is_spared=True)
    results.write()
    (times,) = tables.tables_of(Outcome(read(results.path)))
    assert times.rows[0][1] == "4.00, but > 120 s at a smaller size"


def test_there_is_no_multiple_of_nothing(tmp_path: Path) -> None:
    """A pair whose first figure is 0 prevents a ratio: the other pairs alone would be selected by their result."""
    results = Results(tmp_path, EXPERIMENT, MACHINE)
    results.note({}, CASES, "")
    for pair in range(5):
        results.add(CASES[0].name, "stock", pair, {"elapsed_s": float(pair)})
        results.add(CASES[0].name, "scheduler", pair, {"elapsed_s": 2.0})
    results.write()
    outcome = Outcome(read(results.path))
    assert outcome.ratio(CASES[0].name, "scheduler", "elapsed_s") is None
    (times,) = tables.tables_of(outcome)
    assert times.rows[0][2] == "2.00 ±0%"


def test_what_was_not_there_stays_noted_when_something_else_is_asked_for(tmp_path: Path) -> None:
    results = Results(tmp_path, EXPERIMENT, MACHINE)
    results.note({"pypy": "no PyPy", CASES[1].name: "not allowed", CASES[2].name: "not allowed"}, CASES[:1], "")
    results.write()
    again = Results(tmp_path, EXPERIMENT, MACHINE)
    again.note({}, CASES[1:2], "")
    again.write()
    assert read(again.path)["absent"] == {CASES[2].name: "not allowed"}


def test_the_error_of_an_exponent() -> None:
    """By hand, in powers of two: log2 of the times is 0, 2, 2, 4, so the line is 0.2 + 1.2 x, and the residual 0.8."""
    assert power({1: 1.0, 2: 4.0, 4: 4.0, 8: 16.0}) == pytest.approx((1.2, (0.8 / 2 / 5) ** 0.5))


class Ids(HTMLParser):
    """Collects the names that a page defines and those that it refers to."""

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
    assert summary[0]["exponents"]["start"]["stock"] == {
        "exponent": pytest.approx(2),
        "error": pytest.approx(0, abs=1e-6),
    }


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


@pytest.mark.parametrize("what", ["python", "scheduler", "package", "cpu", "cores", "kernel", "libc"])
def test_other_circumstances_are_never_mixed_in(tmp_path: Path, what: str) -> None:
    results_in(tmp_path)
    python = {**MACHINE["python"], "compiler": "another"}
    other = {**MACHINE, what: python if what == "python" else "another"}
    with pytest.raises(StoreError, match=f"another {SAME[what]}"):
        Results(tmp_path, EXPERIMENT, other)


def test_another_version_of_a_peer_is_not_mixed_in_and_a_new_peer_is(tmp_path: Path) -> None:
    results_in(tmp_path)
    with pytest.raises(StoreError, match="another version of gevent"):
        Results(tmp_path, EXPERIMENT, {**MACHINE, "versions": {"unsnarl": "1.0", "gevent": "2.1"}})
    more = Results(tmp_path, EXPERIMENT, {**MACHINE, "versions": {"unsnarl": "1.0", "aiologic": "3.0"}})
    more.write()
    assert read(more.path)["machine"]["versions"] == {"unsnarl": "1.0", "gevent": "2.0", "aiologic": "3.0"}


def test_runs_with_other_arguments_are_not_mixed_in(tmp_path: Path) -> None:
    """Cases of --quick can have the same names with other arguments."""
    results_in(tmp_path)
    longer = CASES[0]._replace(arguments=("--seconds", "10"))
    with pytest.raises(StoreError, match="'start, n = 100' with other arguments"):
        Results(tmp_path, EXPERIMENT, MACHINE).note({}, [longer], "")


def test_a_report_of_results_that_were_not_taken_alike_says_so(tmp_path: Path) -> None:
    results_in(tmp_path)
    other = EXPERIMENT._replace(name="convoy")
    for experiment, machine in ((other, MACHINE), (other._replace(name="web"), {**MACHINE, "package": "89ab"})):
        results = Results(tmp_path, experiment, machine)
        results.note({}, CASES, "")
        assert page.warnings(page.load(tmp_path)) == []
        results.write()
    (line,) = page.warnings(page.load(tmp_path))
    assert line == (
        "The results of CPython 3.13.0 were taken under different conditions: build of unsnarl. "
        "Alike are: squares, convoy; web."
    )
    page.write(tmp_path, page.load(tmp_path), "")
    markdown, html = (tmp_path / page.MARKDOWN).read_text(), (tmp_path / page.HTML).read_text()
    assert markdown.splitlines()[2] == f"**{line}**"
    assert html.index(line) < html.index("<nav>")
    assert "- unsnarl 1.0 (build 89ab, scheduler 0123); gevent 2.0\n" in markdown


def test_a_directory_is_one_commands_at_a_time(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(StoreError, match="another `unsnarl lab run` is writing"), held(tmp_path):
        raise AssertionError("both had it")
    with held(tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_nothing_temporary_stays_when_results_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = results_in(tmp_path)
    before = results.path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(StoreError, match="No space left"):
        results.write()
    assert [path.name for path in tmp_path.iterdir()] == [results.path.name]
    assert results.path.read_bytes() == before


DAMAGE: list[tuple[tuple[str | int, ...], Any, str]] = [
    (("experiment",), {}, "'experiment' of the file has no 'name'"),
    (("experiment", "figures"), [], "there are no 'figures'"),
    (("runs",), [1], "element 0 of 'runs' of the file is of the wrong type"),
    (("runs", 1, "pair"), "0", "'pair' of element 1"),
    (("runs", 2), {"variant": "stock", "pair": 0}, "element 2 of 'runs' of the file has no 'case'"),
    (("runs", 0, "figures"), [], "'figures' of element 0"),
    (("machine", "python"), None, "'python' of 'machine' of the file is null"),
    (("machine", "versions"), [], "'versions' of 'machine'"),
    (("commands",), 3, "'commands' of the file"),
]


@pytest.mark.parametrize(("where", "value", "what"), DAMAGE)
def test_a_damaged_file(tmp_path: Path, where: tuple[str | int, ...], value: Any, what: str) -> None:
    path = results_in(tmp_path).path
    content: Any = read(path)
    part = content
    for name in where[:-1]:
        part = part[name]
    part[where[-1]] = value
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=f"is damaged: .*{re.escape(what)}"):
        page.load(tmp_path)
    with pytest.raises(StoreError):
        Results(tmp_path, EXPERIMENT, MACHINE)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"format": "other"}', '{"format": "unsnarl-lab-1", "runs": []}', "\0"]
)
def test_a_foreign_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "squares-cpython-3.13.0.json").write_text(content)
    with pytest.raises(StoreError, match=re.escape("squares-cpython-3.13.0.json")):
        page.load(tmp_path)
    with pytest.raises(StoreError):
        Results(tmp_path, EXPERIMENT, MACHINE)


def test_the_load_generator_is_a_circumstance() -> None:
    """The loads of ab and of the laboratory are different circumstances; a newly installed peer is not."""
    with_ab = MACHINE | {"versions": MACHINE["versions"] | {"ab": "2.3"}}
    with_peer = MACHINE | {"versions": MACHINE["versions"] | {"aiologic": "1.0"}}
    assert differences([MACHINE, with_peer]) == []
    assert differences([MACHINE, with_ab]) == ["load generator (ab or ours)"]


def squares_with(folder: Path, case: Case, figures: dict[str, dict[str, Any]]) -> Outcome:
    """Return the outcome of one run of a case in each of some variants."""
    folder.mkdir()
    results = Results(folder, EXPERIMENT, MACHINE)
    results.note({}, (case,), "unsnarl lab run squares")
    for variant, found in figures.items():
        results.add(case.name, variant, 0, found)
    results.write()
    return Outcome(read(results.path))


def test_a_published_table_stands_next_to_the_measured_one(tmp_path: Path) -> None:
    case = Case("start, all cores, n = 300", series="start, all cores", size=300)
    outcome = squares_with(tmp_path / "out", case, {"stock": {"elapsed_s": 1.5}})
    (table,) = beside.tables_of(outcome)
    assert table.head == ("", "CPython, published", "stock, here", "PyPy, published", "PyPy, here")
    assert table.rows[2] == ("n = 300", "1.19", "1.50", "5.81", "-")
    assert table.rows[-1] == ("exponent", "2.03", "-", "2.02", "-")
    assert "published on two cores, here on 2" in table.title


@pytest.mark.parametrize("name", published.CURVES.keys() | published.POINTS.keys() | published.NOT_REPEATED.keys())
def test_published_figures_name_what_the_laboratory_measures(name: str) -> None:
    one = experiments.experiment(name)
    variants, cases = {variant.name for variant in one.variants}, {case.name for case in one.cases}
    figures = {figure.name for figure in one.figures} | {"calls.futex"}
    for point in published.POINTS.get(name, ()):
        assert {point.case, point.over_case or point.case} <= cases
        assert {point.variant, point.over_variant or point.variant} <= variants
        assert point.figure in figures
        assert point.over_variant in ("", one.variants[0].name)
    for series, curve in published.CURVES.get(name, {}).items():
        ours = {case.size for case in one.cases if case.series == series}
        assert {curve.sizes[0], curve.sizes[-1]} <= ours
        assert all(len(column.values) == len(curve.sizes) for column in curve.columns)
        assert {column.variant for column in curve.columns} <= variants
    assert all(what and why for what, why in published.NOT_REPEATED.get(name, ()))


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("strace -- version 6.1", "6.1"),
        ("This is ApacheBench, Version 2.3 <$Revision: 1903618 $>", "2.3"),
        ("2.7.18 (default, May  9 2026, 07:36:57)", "2.7.18"),
        ("git version 2.39.5", "2.39.5"),
        ("26.11.0a1", "26.11.0a1"),
        ("unknown", "unknown"),
    ],
)
def test_the_version_in_what_a_program_prints(text: str, version: str) -> None:
    assert tables.version_in(text) == version


@pytest.mark.skipif(not plots.is_available(), reason="matplotlib is not installed")
def test_a_plot_has_the_colour_of_the_page_and_a_whole_legend(tmp_path: Path) -> None:
    case = Case("20,000 items")
    outcome = squares_with(
        tmp_path / "out", case, {name: {"elapsed_s": 1.0} for name in ("stock", "scheduler", "pypy")}
    )
    (plot,) = plots.plots_of(outcome, "stem")
    assert "currentColor" in plot.svg
    assert "#ffffff" not in plot.svg
    assert plots.INK not in plot.svg
    height = float(re.findall(r'viewBox="0 0 [\d.]+ ([\d.]+)"', plot.svg)[0])
    lowest = max(float(y) for y in re.findall(r"L [\d.]+ ([\d.]+)", plot.svg))
    assert lowest <= height
    assert all(title in plot.svg for title in ("stock", "scheduler", "PyPy"))
