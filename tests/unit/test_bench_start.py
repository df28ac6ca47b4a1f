"""``bench.start``: its page says what its data say."""

from typing import Any

from bench import start

MACHINE = {
    "python": {"version": "3.13.0"},
    "cpu": "a processor",
    "cores": 2,
    "kernel": "6.18",
    "libc": "glibc 2.36",
    "taken": "2026-01-02T03:04:05",
    "commit": "abcdef0",
}


def document(run_ms: float, clean_kib: int) -> dict[str, Any]:
    """Return twenty equal rounds."""
    times = {start.STOCK: 10.0, start.AGAIN: 10.0, start.RUN: run_ms, start.CHILD: 10.2}
    memory = {way: {"dirty_kib": 100, "clean_kib": clean_kib if way == start.RUN else 50} for way in start.WAYS}
    return {
        "machine": MACHINE,
        "load": [0.1, 0.2],
        "cpu_ms": {"no thread": [times] * 20},
        "private": {"one thread": [memory] * 20},
    }


def line(page: str, name: str) -> str:
    """Return a table's row."""
    (found,) = (row for row in page.splitlines() if row.startswith(f"| {name} |"))
    return found


def test_goals_that_are_met() -> None:
    page = start.page([document(10.9, 150)])
    assert "10.00 → 10.90 | 1.090 (1.090 to 1.090) | ≤ 1.10: met" in line(page, "no thread: unsnarl run")
    assert "≤ 1.05: met" in line(page, "no thread: a child")
    assert line(page, "one thread: unsnarl run").endswith("| 150 | 100 | 0 | 100 | met |")
    assert "CPython 3.13.0" in page


def test_goals_that_are_missed() -> None:
    page = start.page([document(11.1, 3000)])
    assert "≤ 1.10: **missed**" in line(page, "no thread: unsnarl run")
    assert line(page, "one thread: unsnarl run").endswith("| **missed** |")


def test_each_way_is_first_equally_often() -> None:
    orders = start.in_turn(8)
    assert [order[0] for order in orders].count(start.RUN) == 2
    assert all(sorted(order) == sorted(start.WAYS) for order in orders)
