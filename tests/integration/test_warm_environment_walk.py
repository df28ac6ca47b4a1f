"""Imports that walk through the environment for names with a certain beginning, and for its size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Rig

SCRIPT = "import sys, mod\nprint(mod.VALUE, '_unsnarl_warm' in sys.modules)\n"
WALKS = {
    "a dictionary": "{name[2:].lower(): value for name, value in os.environ.items() if name.startswith('Q_')}",
    "names": "sorted(name for name in os.environ if name.startswith(('Q_', 'R_')))",
    "values by name": "[os.environ[name] for name in os.environ if name.startswith('Q_')]",
    "whether there is one": "any(name.startswith('Q_') for name in os.environ)",
    "a first one": "next((value for name, value in os.environ.items() if name.startswith('Q_')), None)",
    "interned": "[sys.intern(name) for name in os.environ if name.startswith('Q_') and name]",
    "a loop": "collected(os.environ)",
}


LOOP = (
    "import os, sys\n"
    "def collected(environ):\n"
    "    found = {}\n"
    "    for name in environ:\n"
    "        if not name.startswith('Q_'):\n"
    "            continue\n"
    "        found[name] = environ[name]\n"
    "    for name in found:\n"
    "        found[name] += name\n"
    "    return found\n"
)


@pytest.mark.parametrize("walk", WALKS)
def test_variables_with_the_beginning_belong_to_the_key(rig: Rig, walk: str) -> None:
    (rig.directory / "bin" / "mod.py").write_text(f"{LOOP}VALUE = {WALKS[walk]}\n")
    script = rig.script("walks", SCRIPT)
    for more in ({}, {"Q_A": "1"}, {"Q_A": "2", "Q_B": "x"}):
        env = rig.env | more
        rig.start(script, env=env)
        plain, warm = rig.plain(script, env=env), rig.served(script, env=env)
        assert warm.stdout == plain.stdout.replace(b"False\n", b"True\n") or walk == "whether there is one"
        assert warm.stdout.rpartition(b" ")[0] == plain.stdout.rpartition(b" ")[0]
        assert warm.stdout.endswith(b"True\n"), rig.log()
    other = rig.served(script, env=rig.env | {"Q_A": "1", "ELSE": "1"})
    assert other.stdout.endswith(b"True\n"), rig.log()


def test_each_order_of_the_variables_has_a_server_of_its_own(rig: Rig) -> None:
    text = "import os\nVALUE = next(value for name, value in os.environ.items() if name.startswith('Q_'))\n"
    (rig.directory / "bin" / "mod.py").write_text(text)
    script = rig.script("walks", SCRIPT)
    one, other = ({**rig.env, **more} for more in ({"Q_A": "a", "Q_B": "b"}, {"Q_B": "b", "Q_A": "a"}))
    rig.start(script, env=one)
    assert rig.served(script, env=one).stdout == b"a True\n"
    assert rig.warm(script, env=other).stdout == rig.plain(script, env=other).stdout == b"b False\n"
    rig.start(script, env=other)
    assert rig.served(script, env=other).stdout == b"b True\n"
    assert rig.served(script, env={"ELSE": "1", **one}).stdout == b"a True\n"


BOUND = (
    "import os\n"
    "def _size(env=None):\n"
    "    environ = env if env is not None else getattr(os, 'environb', os.environ)\n"
    "    return 8 * len(environ) + sum(len(name) + len(value) + 2 for name, value in environ.items())\n"
    "def _most():\n"
    "    return max(min(os.sysconf('SC_ARG_MAX') - 2048 - _size(), 1 << 17), 1 << 12)\n"
    "def xargs(*, _max_length=_most()):\n"
    "    return _max_length\n"
)


def test_a_bound_that_usual_environments_do_not_change_is_kept(rig: Rig) -> None:
    package = rig.directory / "bin" / "pre_commit"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "xargs.py").write_text(BOUND)
    script = rig.script(
        "hooks", "import sys\nfrom pre_commit.xargs import xargs\nprint(xargs(), '_unsnarl_warm' in sys.modules)\n"
    )
    rig.start(script)
    assert rig.served(script, env=rig.env | {"MORE": "x" * 1000}).stdout == b"131072 True\n"
    large = rig.env | {f"V{number}": "x" * 100_000 for number in range(19)}
    assert rig.warm(script, env=large).stdout == rig.plain(script, env=large).stdout
    assert b"larger than a mebibyte" in rig.verb("why", script, env=large).stdout


PRINTING = {"file": ("platform.architecture()", "32-bit executable"), "uname": ("platform.uname()[5]", "32-bit")}


@pytest.mark.parametrize("name", PRINTING)
def test_the_kind_of_the_machine_is_asked_of_a_program_that_only_prints(rig: Rig, tmp_path: Path, name: str) -> None:
    expression, answer = PRINTING[name]
    (rig.directory / "bin" / "mod.py").write_text(f"import platform\nVALUE = {expression}\n")
    script = rig.script("who", SCRIPT)
    rig.start(script)
    assert rig.served(script).stdout == rig.plain(script).stdout.replace(b"False", b"True")
    # Another program of that name is another caller's.
    (tmp_path / name).write_text(f"#!/bin/sh\necho {answer}\n")
    (tmp_path / name).chmod(0o755)
    environ = rig.env | {"PATH": f"{tmp_path}:{rig.env['PATH']}"}
    for _ in range(2):
        assert b"32" in (shown := rig.warm(script, env=environ).stdout)
        assert shown.rpartition(b" ")[0] == rig.plain(script, env=environ).stdout.rpartition(b" ")[0]
        rig.verb("start", "--", script, env=environ)


def test_any_other_program_is_still_run_by_runs_only(rig: Rig) -> None:
    (rig.directory / "bin" / "mod.py").write_text("import platform\nVALUE = platform.architecture('/bin/sh')\n")
    script = rig.script("who", SCRIPT)
    rig.start(script)
    assert b"runs a program while it is imported" in rig.verb("why", script).stdout


def test_the_environment_of_wsgiref_is_read_in_each_run(rig: Rig) -> None:
    text = "from wsgiref.handlers import BaseHandler\nclass Value:\n"
    text += (
        "    __repr__ = lambda self: str((BaseHandler.os_environ.get('OF_RUN'), 'ONCE' in BaseHandler.os_environ))\n"
    )
    (rig.directory / "bin" / "mod.py").write_text(text + "VALUE = Value()\n")
    script = rig.script("who", SCRIPT)
    rig.start(script, env=rig.env | {"OF_RUN": "first", "ONCE": ""})
    assert rig.served(script, env=rig.env | {"OF_RUN": "second"}).stdout == b"('second', False) True\n"


def test_an_object_that_keeps_the_environment_of_wsgiref_is_left_to_the_runs(rig: Rig) -> None:
    text = "from wsgiref.handlers import CGIHandler\nVALUE = CGIHandler().base_env.get('OF_RUN')\n"
    (rig.directory / "bin" / "mod.py").write_text(text)
    script = rig.script("who", SCRIPT)
    rig.start(script)
    assert b"reads the whole environment" in rig.verb("why", script).stdout
