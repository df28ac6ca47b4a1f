"""Which imports wait for a run, and how modules are compared with what runs have found."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

from unsnarl.warm.importing import globals_made
from unsnarl.warm.importing.own_calls import OwnCalls
from unsnarl.warm.learning import made_in_runs

WAITING = [
    "import cfg\ncfg.load()\nimport app",
    "from cfg import held\nheld.append(1)\nimport app",
    "from cfg import held\nheld['a'] = 1\nimport app",
    "import cfg\ncfg.A += 1\nimport app",
    "import cfg\nchange(cfg)\nimport app",
    "import cfg\nchange(key=cfg.held)\nimport app",
    "import sys\nsys.setrecursionlimit(9)\nimport app",
    "import sys\nsys.stdout = None\nimport app",
    "import locale\nlocale.setlocale(locale.LC_ALL, '')\nimport app",
    "from . import cfg\ncfg.load()\nimport app",
    "import cfg\ndef main():\n    import app\ncfg.load()\nmain()",
]
AT_ONCE = [
    "import cfg\nimport app",
    "import cfg\nimport app\ncfg.load()",
    "import sys\nsys.stdout.write('')\nimport app",
    "import argparse\nargparse.ArgumentParser().parse_args()\nimport app",
    "def main():\n    import app\n    app.main()\nmain()",
    "import cfg\nprint(1)\nimport app",
    "import sys\nsys.dont_write_bytecode = True\nimport app",
]


@pytest.mark.parametrize(("text", "waits"), [*((one, True) for one in WAITING), *((one, False) for one in AT_ONCE)])
def test_an_import_after_code_that_may_change_something_waits(text: str, waits: bool) -> None:
    tree = ast.parse(text)
    (node,) = [one for one in ast.walk(tree) if isinstance(one, ast.Import) and one.names[0].name == "app"]
    assert OwnCalls(tree).may_precede(node) == waits


BODIES: list[tuple[str, dict[str, object], dict[str, object], bool]] = [
    ("MODE = made()", {"MODE": 1}, {"MODE": 2}, True),
    ("MODE = 1", {"MODE": 1}, {"MODE": 2}, False),
    ("MODE, OTHER = 1, []", {"MODE": 1}, {"MODE": 2}, False),
    ("MODE: int = 1", {"MODE": 1}, {"MODE": 2}, False),
    ("MODE = {}", {"MODE": {}}, {"MODE": {"a": 1}}, False),
    ("MODE = []\nMODE.append(made())", {"MODE": [1]}, {"MODE": [2]}, True),
    ("MODE = None\ndef change():\n    global MODE\n    MODE = made()", {"MODE": None}, {"MODE": "a"}, False),
    ("from other import MODE", {"MODE": 1}, {"MODE": 2}, True),
    ("from other import MODE", {"MODE": [1]}, {"MODE": [2]}, False),
    ("from other import *", {"MODE": 1}, {"MODE": 2}, True),
    ("MODE = made()", {"MODE": ((1,), 2)}, {"MODE": ((3,), 2)}, True),
    ("MODE = made()", {"MODE": {"a", "b"}}, {"MODE": {"b", "a"}}, False),
    ("MODE = made()", {"MODE": sys.__stdout__}, {"MODE": open}, False),
    ("MODE = made()", {"MODE": sys.__stdout__}, {"MODE": sys.__stderr__}, True),
]


@pytest.mark.parametrize(("source", "here", "there", "differs"), BODIES)
def test_what_a_body_takes_is_compared(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    here: dict[str, object],
    there: dict[str, object],
    differs: bool,
) -> None:
    module = ModuleType("taken_here")
    module.__file__ = str(tmp_path / "taken_here.py")
    Path(module.__file__).write_text(f"{source}\n")
    monkeypatch.setitem(sys.modules, "taken_here", module)
    vars(module).update(there)
    found = globals_made.dump(globals_made.of("taken_here"))
    vars(module).update(here)
    assert bool(made_in_runs.differing({"taken_here": [found]}, set())) == differs
    assert not made_in_runs.differing({"taken_here": [found]}, {("taken_here", "MODE")})


def test_an_attribute_of_a_class_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("taken_here")
    module.__file__ = str(tmp_path / "taken_here.py")
    Path(module.__file__).write_text("class Kind:\n    MODE = made()\n    SIZE = 1\n")
    monkeypatch.setitem(sys.modules, "taken_here", module)
    kind = type("Kind", (), {"MODE": 1, "SIZE": 1, "__module__": "taken_here"})
    vars(module)["Kind"] = kind
    found = globals_made.dump(globals_made.of("taken_here"))
    kind.SIZE = 2  # type: ignore[attr-defined]
    assert not made_in_runs.differing({"taken_here": [found]}, set())
    kind.MODE = 2  # type: ignore[attr-defined]
    why = "taken_here.Kind.MODE comes out otherwise than in a run"
    assert made_in_runs.differing({"taken_here": [found]}, set()) == [("taken_here", why)]


def test_what_runs_of_a_key_have_reported_counts_before_that_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("taken_here")
    monkeypatch.setitem(sys.modules, "taken_here", module)
    stem = str(tmp_path / "stem")
    for key, value in (("one", 1), ("two", 2), ("two", 3)):
        vars(module)["MODE"] = value
        globals_made.report(stem, key, ["taken_here", "json"])
    found = {key: globals_made.reported(stem, key) for key in ("one", "two", "three")}
    assert {key: len(texts["taken_here"]) for key, texts in found.items()} == {"one": 1, "two": 2, "three": 3}
    assert "json" not in found["one"]
    assert Path(f"{stem}.made").stat().st_mode & 0o777 == 0o600
    assert globals_made.reported(str(tmp_path / "none"), "one") == {}
