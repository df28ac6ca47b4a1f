"""The guide explains every kind of finding."""

from __future__ import annotations

import ast
from pathlib import Path

from unsnarl.trace import findings

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "trace.md"


def kinds() -> set[str]:
    """Return the kinds of the findings that the tracer's modules make."""
    found: set[str] = set()
    for path in Path(findings.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding":
                found |= {arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)}  # type: ignore[misc]
    return found


def test_every_kind_of_finding_has_a_row() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert len(kinds()) > 20
    assert [kind for kind in sorted(kinds() - {"time"}) if f"`{kind}`" not in text] == []
