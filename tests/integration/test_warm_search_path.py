"""A program that changes the search path gets the modules of a plain run."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

INSERT = "import os, sys\nsys.path.insert(0, os.path.abspath(os.path.dirname(__file__) + '/../vendor'))\n"
SHOW = "print(VALUE, '_unsnarl_warm' in sys.modules)\n"
PROGRAMS = {
    "a module changes it": (INSERT + "from opt import VALUE\n", "import sys\nfrom mod import VALUE\n" + SHOW),
    "the command changes it": ("", INSERT + "from opt import VALUE\n" + SHOW),
    "a function of the command needs it": (
        "",
        f"def value():\n    from opt import VALUE\n    return VALUE\n{INSERT}VALUE = value()\n{SHOW}",
    ),
    "the command changes it at times": (
        "",
        "import sys\nif len(sys.argv) < 9:\n" + textwrap.indent(INSERT, "    ") + "from opt import VALUE\n" + SHOW,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_module_is_that_of_the_plain_run(rig: Rig, name: str) -> None:
    for place in ("bin", "vendor"):
        (rig.directory / place).mkdir(exist_ok=True)
        (rig.directory / place / "opt.py").write_text(f"VALUE = {place!r}\n")
    module, program = PROGRAMS[name]
    (rig.directory / "bin" / "mod.py").write_text(module)
    script = rig.script("who", program)
    assert rig.plain(script).stdout == b"vendor False\n"
    rig.start(script)
    shown = rig.verb("why", "--", script).stdout.decode()
    assert ("opt is not imported ahead: " in shown) == (not module)
    for _ in range(2):  # the second time with what the first run has loaded
        rig.start(script)
        assert rig.served(script).stdout == b"vendor True\n"
        rig.verb("stop")
        rig.verb("learn", "--", script)


def test_a_change_that_only_some_calls_make_counts_in_these(rig: Rig) -> None:
    (rig.directory / "vendor").mkdir()
    for place in ("bin", "vendor"):
        (rig.directory / place / "opt.py").write_text(f"VALUE = {place!r}\n")
    change = "import sys\nif 'vendor' in sys.argv:\n" + textwrap.indent(INSERT, "    ")
    script = rig.script("who", change + "from opt import VALUE\n" + SHOW)
    rig.start(script)
    assert rig.served(script).stdout == b"bin True\n"
    rig.verb("stop")
    rig.verb("learn", "--", script)
    rig.start(script)
    assert rig.served(script).stdout == b"bin True\n"
    assert rig.served(script, "vendor").stdout == b"vendor True\n"


def test_a_server_that_finds_another_module_than_was_learned_refuses(rig: Rig) -> None:
    (rig.directory / "bin" / "mod.py").write_text("VALUE = 1\n")
    script = rig.script("who", "import sys\nfrom mod import VALUE\n" + SHOW)
    rig.start(script)
    assert rig.served(script).stdout == b"1 True\n"
    rig.verb("stop")
    (facts,) = rig.house.glob("*.facts")
    origin = str(rig.directory / "bin" / "mod.py")
    text = facts.read_text()
    assert f"origin\t{origin}\tmod\n" in text
    facts.write_text(text.replace(f"origin\t{origin}\tmod\n", "origin\t/elsewhere/mod.py\tmod\n"))
    assert rig.warm(script).stdout == b"1 False\n"
    rig.verb("start", "--", script)
    reason = f"mod was /elsewhere/mod.py when it was learned, its server has found {origin}"
    assert reason in rig.log()
    assert reason in " ".join(rig.verb("why", script).stdout.decode().split())
    assert rig.warm(script).stdout == b"1 False\n"


VEILED = """\
import sys, types
class Veil(types.ModuleType):
    def __init__(self, module):
        super().__init__(module.__name__)
        self.__dict__["_module"] = module
    def __getattr__(self, name):
        self.__dict__[name] = value = getattr(self._module, name)
        return value
VALUE = 1
sys.modules[__name__] = Veil(sys.modules[__name__])
"""
"""As ``cryptography.utils.deprecated`` does: what the module has is in its place only once it is asked for."""


def test_a_module_that_shows_its_file_only_when_asked_is_the_same(rig: Rig) -> None:
    (rig.directory / "bin" / "mod.py").write_text(VEILED)
    script = rig.script("who", "import sys\nfrom mod import VALUE\n" + SHOW)
    rig.start(script)
    assert rig.served(script).stdout == b"1 True\n"
    rig.verb("stop")
    (facts,) = rig.house.glob("*.facts")
    # As it is learned where something has asked for the file in the learning run alone.
    facts.write_text(f"{facts.read_text().rstrip()}\norigin\t{rig.directory / 'bin' / 'mod.py'}\tmod\n")
    rig.start(script)
    assert rig.served(script).stdout == b"1 True\n"
