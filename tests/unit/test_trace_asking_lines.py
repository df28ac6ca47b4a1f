"""What the source says of a loop: whether it only looks for a change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from unsnarl.trace import asking_lines

if TYPE_CHECKING:
    from pathlib import Path

ASKING = (
    ("while not done:  # here\n    pass\n", "while not done"),
    ("while not done:\n    pass  # here\n", "while not done"),
    ("while not done: pass  # here\n", "while not done"),
    ("while True:\n    if event.is_set():  # here\n        work()\n        break\n", "if event.is_set()"),
    ("while True:\n    if a:\n        go()\n    elif not b.done():  # here\n        continue\n", "if not b.done()"),
    ("while time.monotonic() < until:  # here\n    ...\n", "while time.monotonic() < until"),
    ("while not lock.acquire(False):  # here\n    pass\n", "while not lock.acquire(False)"),
    ("while not lock.acquire(timeout=0):  # here\n    pass\n", "while not lock.acquire(timeout=0)"),
    (
        "while not over:\n    if lock.acquire(False):  # here\n        n += 1\n        lock.release()\n",
        "if lock.acquire(False)",
    ),
    ("while True:\n    if done:  # here\n        done = False\n        break\n", "if done"),
    ("for each in some:\n    while each.is_alive():  # here\n        pass\n", "while each.is_alive()"),
)

WORKING = (
    "while number != 1:  # here\n    number //= 2\n",
    "while lock.acquire():  # here\n    pass\n",
    "while lock.acquire(timeout=2):  # here\n    pass\n",
    "while step():  # here\n    pass\n",
    "while item := next(items, None):  # here\n    pass\n",
    "while not done:\n    if ready:\n        total += 1  # here\n",
    "while True:\n    if ready:\n        pass\n    work()  # here\n",
    "for each in some:  # here\n    pass\n",
    "async def f():\n    while not await ready():  # here\n        pass\n",
    "while (:  # here\n",
    "while i < len(a):  # here\n    if a[i] < b[j]:\n        i += 1\n    elif a[i] >= b[j]:\n        j += 1\n",
    "while i < len(a):\n    if a[i] < b[j]:  # here\n        i += 1\n",
    "while heap:\n    if len(heap) % 2:  # here\n        heap.pop()\n",
    "while self.rows:\n    if self.rows[0]:  # here\n        self.rows.pop()\n",
    "while rows:\n    if rows[0]:  # here\n        del rows[0]\n",
    "while True:\n    if items.get_nowait():  # here\n        handle()\n",
    "while any(x > y for x in xs):  # here\n    pass\n",
    "while a @ b:  # here\n    pass\n",
)


def line_in(text: str) -> int:
    return text[: text.index("# here")].count("\n") + 1


@pytest.mark.parametrize(("text", "condition"), ASKING)
def test_a_loop_that_only_looks(tmp_path: Path, text: str, condition: str) -> None:
    path = tmp_path / "app.py"
    path.write_text(text)
    assert asking_lines.asked(str(path), line_in(text)) == condition


@pytest.mark.parametrize("text", WORKING)
def test_a_loop_that_does_something(tmp_path: Path, text: str) -> None:
    path = tmp_path / "app.py"
    path.write_text(text)
    assert asking_lines.asked(str(path), line_in(text)) == ""


def test_a_file_that_cannot_be_read() -> None:
    assert asking_lines.asked("<string>", 1) == ""


def test_a_long_condition_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "app.py"
    path.write_text(f"while not {'a' * 80}:\n    pass\n")
    assert len(asking_lines.asked(str(path), 1)) == asking_lines.LONGEST
