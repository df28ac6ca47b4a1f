"""The rule about walls between folders finds imports that go through one, in Python and in Rust."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _rooms() -> ModuleType:
    spec = importlib.util.spec_from_file_location("rooms", ROOT / "scripts/rooms.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look a class's module up
    spec.loader.exec_module(module)
    return module


rooms = _rooms()
PYTHON = rooms.House("python/unsnarl/house", {"": (), "low": ("",), "high": ("low", "")}, outside=("high",))
RUST = rooms.House("crates/x/src/house", {"": ("low",), "low": (), "high": ("low",)})
FINE = {
    "python/unsnarl/house/high/a.py": "import os\nfrom unsnarl.errors import E\nfrom ..low import b\nfrom . import c\n",
    "python/unsnarl/house/low/b.py": "import os\nfrom ..facts import f\nfrom .. import facts\n",
    "crates/x/src/house/high/a.rs": "use super::super::low::{B, c::{D, E as F}};\nuse crate::other::X;\n",
    "crates/x/src/house/low/b.rs": "// use super::super::high::A;\nuse super::c;\nfn f() { crate::other::g() }\n",
    "crates/x/src/house/low/mod.rs": "mod b;\npub use self::b::B;\nmod tests { use super::b; }\n",
    "crates/x/src/house/low/c.rs": "use super::b::{self, B};\npub(in crate::house) struct S;\n",
}


def found(directory: Path, files: dict[str, str]) -> list[str]:
    """Return the complaints about these files."""
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return list(rooms.complaints(map(Path, files), directory, [PYTHON, RUST]))


def test_what_the_arrows_allow_is_fine(tmp_path: Path) -> None:
    assert found(tmp_path, FINE) == []


@pytest.mark.parametrize(("name", "text", "target"), [
    ("python/unsnarl/house/low/x.py", "from ..high import a\n", "unsnarl.house.high.a"),
    ("python/unsnarl/house/low/x.py", "from .. import high\n", "unsnarl.house.high"),
    ("python/unsnarl/house/low/x.py", "import unsnarl.house.high.a\n", "unsnarl.house.high.a"),
    ("python/unsnarl/house/facts.py", "def f():\n    from .low import b\n", "unsnarl.house.low.b"),
    ("python/unsnarl/house/low/__init__.py", "from ..high.a import b\n", "unsnarl.house.high.a.b"),
    ("python/unsnarl/house/low/x.py", "from unsnarl.errors import E\n", "unsnarl.errors.E"),
    ("python/unsnarl/house/low/x.py", "from ... import errors\n", "unsnarl.errors"),
    ("crates/x/src/house/low/x.rs", "use super::super::high::A;\n", "crate.house.high.A"),
    ("crates/x/src/house/low/x.rs", "use crate::{other::B, house::{high::{A, C}}};\n", "crate.house.high.A"),
    ("crates/x/src/house/low/x.rs", "fn f() { crate::house::high::f() }\n", "crate.house.high.f"),
    ("crates/x/src/house/low/x.rs", "mod t {\n use super::super::super::high::A;\n}\n", "crate.house.high.A"),
    ("crates/x/src/house/low/mod.rs", "use super::high::A;\n", "crate.house.high.A"),
    ("crates/x/src/house/high.rs", "use super::facts::A;\n", "crate.house.facts.A"),
])  # fmt: skip
def test_an_import_through_a_wall_is_found(tmp_path: Path, name: str, text: str, target: str) -> None:
    complaints = found(tmp_path, FINE | {name: text})
    assert complaints
    assert all(one.startswith(f"{name}:") for one in complaints)
    assert f"must not import {target}" in complaints[0]


def test_a_circle_in_a_table_is_found() -> None:
    circular = rooms.House("python/unsnarl/house", {"a": ("b",), "b": ("c",), "c": ("a",), "d": ("a",)})
    (complaint,) = rooms.complaints([], ROOT, [circular])
    assert "a, b, c may import each other" in complaint


def test_a_name_that_leads_to_no_module_is_found(tmp_path: Path) -> None:
    (tmp_path / "python/unsnarl/room").mkdir(parents=True)
    text = 'RUN = "unsnarl.room.file"\nGONE = "unsnarl.room.gone"\nOTHER = "_unsnarl_warm.x"\n'
    (tmp_path / "python/unsnarl/room/file.py").write_text(text)
    (tmp_path / "crates").mkdir()
    (tmp_path / "crates/a.rs").write_text('let class = "unsnarl.room.file.class"; let gone = "unsnarl.begin";\n')
    files = [Path("python/unsnarl/room/file.py"), Path("crates/a.rs")]
    assert list(rooms.misnamed(files, tmp_path)) == [
        "python/unsnarl/room/file.py:2: there is no module unsnarl.room.gone",
        "python/unsnarl/room/file.py:3: there is no module _unsnarl_warm.x",
        "crates/a.rs:1: there is no module unsnarl.begin",
    ]
