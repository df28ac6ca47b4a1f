"""Values that imports only keep split no servers: each worker has its caller's; those that decide something do."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Rig

SHOWN = "print(repr(mod.VALUE), '_unsnarl_warm' in sys.modules)\n"


def script_of(rig: Rig, module: str) -> str:
    """Write a command that prints its module's ``VALUE``, and whether it is warm."""
    (rig.directory / "bin" / "mod.py").write_text(f"import os, sys\n{module}\n")
    return rig.script("who", f"import sys, mod\n{SHOWN}")


def record(rig: Rig) -> str:
    """Return what the client reads of the command."""
    (path,) = (path for path in rig.house.glob("*.rec") if "warm" in path.read_text())
    return path.read_text()


KEPT = {
    "text": ("VALUE = os.environ.get('KEPT')", "{0!r}"),
    "bytes": ("VALUE = os.environb.get(b'KEPT')", "b{0!r}"),
    "by name": ("VALUE = os.environ['KEPT']", "{0!r}"),
    "or a default": ("VALUE = os.getenv('KEPT') or 'none'", "{0!r}"),
    "path in it": ("VALUE = os.path.join(os.environ['KEPT'], 'a', 'b')", "'{0}/a/b'"),
    "normal path": ("VALUE = os.path.abspath(os.path.normpath(os.environ['KEPT']))", "{0!r}"),
    "whether it is set": ("VALUE = bool(os.environ.get('KEPT'))", "True"),
    "read and dropped": ("os.environ.get('KEPT'); VALUE = 1", "1"),
}


@pytest.mark.parametrize(("module", "shown"), KEPT.values(), ids=KEPT)
def test_a_kept_variable_splits_no_servers(rig: Rig, module: str, shown: str) -> None:
    script = script_of(rig, module)
    rig.start(script, env=rig.env | {"KEPT": "/one/two"})
    for value in ("/one/two", "/three", "/x/y z"):
        said = rig.served(script, env=rig.env | {"KEPT": value}).stdout.decode()
        assert said == f"{shown.format(value)} True\n", rig.log()
    assert "var KEPT" not in record(rig)


DECIDING = {
    "comparison": "VALUE = os.environ.get('DECIDES') == 'secret'",
    "member of a set": "VALUE = os.environ.get('DECIDES') in {'secret'}",
    "number": "VALUE = int(os.environ.get('DECIDES').encode().hex(), 16) == int('736563726574', 16)",
    "end of a path": "VALUE = os.path.basename(os.environ.get('DECIDES')) == 'secret'",
    "instance": "class Kept: pass\nVALUE = Kept()\nVALUE.it = os.environ.get('DECIDES')\n"
    "Kept.__repr__ = lambda self: str(self.it == 'secret')",
    "default argument": "class Kept:\n    def __repr__(self, it=os.environ.get('DECIDES')):\n"
    "        return str(it == 'secret')\nVALUE = Kept()",
    "looked up": "VALUE = os.path.exists(os.environ['DECIDES'] + '/secret') or os.environ['DECIDES'] == 'secret'",
    "given on": "os.environ['OTHER'] = os.environ['DECIDES']\n"
    "VALUE = type('Kept', (), {'__repr__': lambda self: str(os.environ['OTHER'] == 'secret')})()",
}


@pytest.mark.parametrize("first", ["public", "secret"])
@pytest.mark.parametrize("module", DECIDING.values(), ids=DECIDING)
def test_a_variable_that_decides_something_is_part_of_the_key(rig: Rig, module: str, first: str) -> None:
    script = script_of(rig, module)
    rig.start(script, env=rig.env | {"DECIDES": first})
    assert "var DECIDES" in record(rig)
    for value, shown in (("public", b"False"), ("secret", b"True"), ("public", b"False")):
        assert rig.warm(script, env=rig.env | {"DECIDES": value}).stdout.split()[0] == shown


def test_the_directory_that_a_shell_names_is_a_variable_like_others(rig: Rig, tmp_path: Path) -> None:
    script = script_of(rig, "VALUE = os.environ.get('PWD')")
    rig.start(script, env=rig.env | {"PWD": str(tmp_path)})
    for value in (str(tmp_path), "/one"):
        assert rig.served(script, env=rig.env | {"PWD": value}).stdout.decode() == f"{value!r} True\n"
    module = "VALUE = os.stat(os.environ['PWD']).st_ino == os.stat(os.getcwd()).st_ino"
    script = script_of(rig, module)
    for value, shown in ((str(rig.directory / "work"), b"True"), ("/", b"False")):
        rig.start(script, env=rig.env | {"PWD": value})
        assert rig.served(script, env=rig.env | {"PWD": value}).stdout == shown + b" True\n"


def test_unset_empty_and_set_stay_apart(rig: Rig) -> None:
    script = script_of(rig, "VALUE = os.environ.get('KEPT', 'default') or 'empty'")
    for more, shown in (({}, b"'default'"), ({"KEPT": ""}, b"'empty'"), ({"KEPT": "x"}, b"'x'")):
        for ignored in ({}, {"UNSNARL_WARM_IGNORE": "KEPT"}):
            environ = rig.env | more | ignored
            rig.start(script, env=environ)
            for _ in range(2):
                assert rig.served(script, env=environ).stdout == shown + b" True\n"
    assert rig.served(script, env=rig.env | {"KEPT": "y"}).stdout == b"'y' True\n"


@pytest.mark.parametrize(
    "name", ["HOME", "PYTHON_VERSION", "LC_TIME", "OMP_NUM_THREADS", "SSL_CERT_FILE", "NUMBA_DEBUG"]
)
def test_variables_that_are_not_read_split_no_servers(rig: Rig, name: str) -> None:
    script = script_of(
        rig, "import site\nclass Base:\n    __repr__ = lambda self: repr(site.USER_BASE)\nVALUE = Base()"
    )
    rig.start(script, env=rig.env | {name: "/one"})
    outcome = rig.served(script, env=rig.env | {name: "/two"})
    assert outcome.stdout.endswith(b"True\n"), rig.log()
    assert outcome.stdout.split()[0] == rig.plain(script, env=rig.env | {name: "/two"}).stdout.split()[0]


@pytest.mark.parametrize("made", ["os.getcwd()", "os.path.abspath(os.getcwd())", "os.path.join(os.getcwd(), 'a')"])
def test_a_kept_directory_splits_no_servers(rig: Rig, tmp_path: Path, made: str) -> None:
    script = script_of(rig, f"VALUE = {made}")
    rig.start(script)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert rig.served(script, cwd=tmp_path / name).stdout.decode().split()[0].startswith(f"'{tmp_path / name}")
        (tmp_path / name / "comes.py").touch()  # what comes in it makes nothing stale
    assert rig.served(script, cwd=tmp_path / "one").stdout == rig.plain(script, cwd=tmp_path / "one").stdout.replace(
        b"False", b"True"
    )
    assert rig.served(script, cwd="/").stdout == rig.plain(script, cwd="/").stdout.replace(b"False", b"True")
    assert sys.executable


@pytest.mark.parametrize("made", ["os.path.basename(os.getcwd()) == 'one'", "os.path.exists('only')"])
def test_a_directory_that_decides_something_is_part_of_the_key(rig: Rig, tmp_path: Path, made: str) -> None:
    script = script_of(rig, f"VALUE = {made}")
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "only").touch()
    rig.start(script)
    assert rig.served(script).stdout == b"False True\n"
    assert rig.warm(script, cwd=tmp_path / "one").stdout.split()[0] == b"True"
