"""The program runs in the very module object that its imports have kept as ``__main__``."""

from __future__ import annotations

import json
import sys
import zipapp
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


@pytest.mark.parametrize("kind", ["with a first line", "without", "directory"])
def test_an_archive_runs_as_plainly(rig: Rig, kind: str) -> None:
    source, archive = rig.directory / "source", rig.directory / "app.pyz"
    source.mkdir()
    (source / "keeps.py").write_text(KEEPS)
    report = "print(sys.argv, sys.path[0], sys.orig_argv[1:], __file__, __package__, keeps.__file__)\n"
    (source / "__main__.py").write_text(PROGRAM + report + "sys.exit(len(sys.argv))\n")
    zipapp.create_archive(source, archive, interpreter=sys.executable if kind == "with a first line" else None)
    words = {"with a first line": [str(archive)], "without": [sys.executable, str(archive)]}
    command = words.get(kind, [sys.executable, str(source)])
    rig.start(*command)
    plain, warm = rig.plain(*command, "a"), rig.served(*command, "a")
    assert warm.stdout.replace(b" true]", b" false]") == plain.stdout, rig.log()
    assert (plain.returncode, warm.returncode) == (2, 2)
    (source / "__main__.py").write_text("print('changed')\n")
    zipapp.create_archive(source, archive, interpreter=sys.executable if kind == "with a first line" else None)
    assert rig.warm(*command).stdout == b"changed\n"
