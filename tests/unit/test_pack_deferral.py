"""Imports that bind the same value at any time are compiled as lazy imports, where the interpreter has these."""

import ast
from pathlib import Path

import pytest

from unsnarl.pack import deferral

LATE = "import json\nlimit = 1\ndef load(): pass\nclass Box: pass\n"
STATEMENTS = {
    "import late_one": 1,
    "import late_one, other": 0,
    "from late_one import load, Box as B": 1,
    "from late_one import json": 1,
    "from late_one import limit": 0,
    "from late_one import load, limit": 0,
    "from late_one import nothing": 0,
    "from late_one import *": 0,
    "from other import load": 0,
}


def test_only_what_stands_for_the_same_at_any_time_is_taken_lazily(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "late_one.py"
    path.write_text(LATE)
    monkeypatch.setattr(deferral, "HAS_LAZY_IMPORTS", True)
    fixed = deferral.fixed_names({"late_one": str(path)}, ["late_one"])
    parsed: list[ast.Module] = []
    parse = ast.parse

    def watched(source: bytes, name: str) -> ast.Module:
        parsed.append(parse(source, name))
        return parsed[-1]

    monkeypatch.setattr(ast, "parse", watched)
    deferral.compiled("\n".join(STATEMENTS).encode(), "user.py", "", fixed, 0)
    assert [getattr(one, "is_lazy", 0) or 0 for one in parsed[0].body] == [*STATEMENTS.values()]
