"""The program runs in the very module object that its imports have kept as ``__main__``."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

KEEPS = "import __main__\nMAIN, FILE, NAMES = __main__, __main__.__file__, list(vars(__main__))\n"
PROGRAM = """
import sys, json, rlcompleter
import keeps
answer = 42
print(json.dumps([
    keeps.FILE, keeps.FILE == __file__, keeps.MAIN is sys.modules["__main__"], keeps.MAIN.answer,
    rlcompleter.Completer().complete("answ", 0), [name for name in keeps.NAMES if name.startswith("__")],
    list(globals()), getattr(__spec__, "name", None), type(__loader__).__name__, "_unsnarl_warm" in sys.modules,
]))
"""


def reports(rig: Rig, words: list[str], env: dict[str, str]) -> list[list[object]]:
    """Return the program's report of a plain and of a warm run."""
    rig.start(*words, env=env)
    return [json.loads(run(*words, env=env).stdout) for run in (rig.plain, rig.served)]


@pytest.mark.parametrize("words", ["script", "-m package", "-m package.part", "-m module"])
def test_what_imports_keep_of_the_program_is_the_program(rig: Rig, words: str) -> None:
    library = rig.directory / "library"
    (library / "package").mkdir(parents=True)
    (library / "keeps.py").write_text(KEEPS)
    (library / "package" / "__init__.py").write_text("")
    for name in ("package/__main__", "package/part", "module"):
        (library / f"{name}.py").write_text(PROGRAM)
    command = [rig.script("program", PROGRAM)] if words == "script" else [sys.executable, *words.split()]
    plain, warm = reports(rig, command, rig.env | {"PYTHONPATH": str(library)})
    assert (plain.pop(), warm.pop()) == (False, True)
    assert plain == warm
