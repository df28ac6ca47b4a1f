"""Table, JSON and picture show the same figures, including missing ones."""

import json
from xml.etree import ElementTree as ET

import pytest

from unsnarl.demo.measurement import Plan, Window
from unsnarl.demo.report import Report
from unsnarl.demo.variant import STOCK, UNSNARL

PLAN = Plan(("stdlib", "gunicorn"), (1, 50), hogs=4, pairs=2, window_s=0.5, warmup_s=0.1)


def windows() -> list[Window]:
    rates = {STOCK: (30.0, 40.0), UNSNARL: (3000.0, 3600.0)}
    return [
        Window(kind, variant, c, pair, rates[variant][pair], 1e6 / rates[variant][pair], 9e4, 17_000.0)
        for kind in PLAN.kinds
        for c in PLAN.connections
        for variant in (STOCK, UNSNARL)
        for pair in range(PLAN.pairs)
    ]


def without_answers() -> list[Window]:
    return [w._replace(requests_per_s=0.0, p50_us=None, p99_us=None) if w.variant == STOCK else w for w in windows()]


@pytest.fixture(autouse=True)
def plain_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")


def test_the_table_fits_a_terminal_of_eighty_columns() -> None:
    text = Report(PLAN, windows()).text()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_the_table_has_three_lines_for_each_load() -> None:
    text = Report(PLAN, windows()).text()
    for word in ("stock", "unsnarl", "ratio"):
        assert sum(line[13:].startswith(word) or f" {word} " in line for line in text.splitlines()) >= 4
    assert "95.0× ?" in text
    assert "±7%" in text
    assert "next to 4 CPU-bound threads" in text


def test_a_wide_terminal_shows_the_spread_next_to_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert "95.0× ±7% ?" in Report(PLAN, windows()).text()


def test_the_longest_cells_are_whole_at_eighty_columns() -> None:
    plan = PLAN._replace(pairs=5)
    made = [
        w._replace(pair=pair, p99_us=(9e5 if w.variant == STOCK else 1e2 * (1 + 9 * (pair % 2))), p50_us=9.99e4 + pair)
        for w in windows()
        if w.pair == 0
        for pair in range(5)
    ]
    text = Report(plan, made).text()
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_less_cpu_work_is_explained() -> None:
    plan = PLAN._replace(pairs=5)
    made = [
        w._replace(pair=pair, work_per_s=1000.0 if w.variant == STOCK else 900.0)
        for w in windows()
        if w.pair == 0
        for pair in range(5)
    ]
    assert "CPU work falls because more requests are answered" in Report(plan, made).text()
    assert "CPU work falls" not in Report(PLAN, windows()).text()


def test_json_holds_the_figures_of_the_table_and_every_window() -> None:
    document = json.loads(Report(PLAN, windows()).json())
    first = document["comparisons"][0]
    assert (first["server"], first["connections"]) == ("stdlib", 1)
    assert first["requests_per_s"]["stock"] == 35.0
    assert first["requests_per_s"]["unsnarl"] == 3300.0
    assert first["requests_per_s"]["ratio"]["median"] == 95.0
    assert len(document["windows"]) == PLAN.window_count()


def test_a_side_without_answers_is_shown_as_such() -> None:
    report = Report(PLAN, without_answers())
    assert json.loads(report.json())["comparisons"][0]["p99_us"]["stock"] is None
    assert " - " in report.text()
    ET.fromstring(report.svg())


@pytest.mark.parametrize("kinds", [("stdlib",), ("stdlib", "gunicorn")])
def test_the_picture_is_well_formed_and_everything_lies_inside(kinds: tuple[str, ...]) -> None:
    svg = ET.fromstring(Report(PLAN, [w for w in windows() if w.kind in kinds]).svg())
    _, _, width, height = map(float, svg.attrib["viewBox"].split())
    shapes = [element for element in svg.iter() if element.tag.endswith("rect")]
    assert len(shapes) > 6 * len(kinds)
    for shape in shapes:
        x, y = float(shape.attrib["x"]), float(shape.attrib["y"])
        assert x >= 0
        assert y >= 0
        assert x + float(shape.attrib["width"]) <= width
        assert y + float(shape.attrib["height"]) <= height


def test_the_picture_follows_the_readers_colour_scheme_and_needs_nothing_else() -> None:
    svg = Report(PLAN, windows()).svg()
    assert "prefers-color-scheme: dark" in svg
    assert "url(" not in svg
    assert "href" not in svg
    assert "<script" not in svg


def test_a_server_without_cpu_bound_threads_is_said_to_be_alone() -> None:
    alone = [w._replace(work_per_s=0.0) for w in windows()]
    report = Report(PLAN._replace(hogs=0), alone)
    assert report.title() == "A threaded web server alone"
    ET.fromstring(report.svg())
