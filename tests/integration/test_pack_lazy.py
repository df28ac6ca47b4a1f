"""Late modules: the right ones are loaded on first use, and everything else is unchanged."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from unsnarl.pack import container, deferral

if TYPE_CHECKING:
    import subprocess

    from tests.integration.conftest import Rig

APP = """
import sys
import late_one, touched, loud
from named import NAME
try:
    import guarded
except ImportError:
    guarded = None
import family.late_two
print(touched.VALUE, NAME)
exec(sys.argv[1])
"""
MODULES = {
    "late_one": "import helper\nVALUE = 1\nclass K: pass\ndef f():\n    return 1 / 0\n",
    "helper": "HELP = 2\n",
    "touched": "VALUE = 3\n",
    "loud": "import atexit\natexit.register(print, 'end')\n",
    "named": "NAME = 4\n",
    "guarded": "VALUE = 5\n",
    "family/__init__": "",
    "family/late_two": "VALUE = 6\n",
}
LATE = "print(sorted(n for n, m in sys.modules.items() if type(m).__name__ == 'LateModule'))"


@pytest.fixture
def app(rig: "Rig") -> tuple[str, str]:
    """A script that imports all kinds of modules, and its launcher."""
    (rig.directory / "bin" / "family").mkdir()
    for name, text in MODULES.items():
        (rig.directory / "bin" / f"{name}.py").write_text(text)
    script = rig.script("app", APP)
    made = pack(rig, script, "pass", "pass")
    assert b"(3 of them late)" in made.stdout, made.stderr
    return script, str(rig.directory / "app")


def pack(rig: "Rig", script: str, *runs: str) -> "subprocess.CompletedProcess[bytes]":
    """Make a lazy pack of a script."""
    words = [word for run in runs for word in ("--with", f"'{run}'")]
    made = rig.plain(UNSNARL, "pack", script, "-o", str(rig.directory / "app.pack"), "--lazy", *words)
    assert made.returncode == 0, made.stderr
    return made


def test_only_quiet_modules_that_no_run_touches_are_late(rig: "Rig", app: tuple[str, str]) -> None:
    shown = rig.plain(app[1], LATE)
    assert b"['family.late_two', 'late_one']" in shown.stdout
    # Modules that only a late module imports are not loaded either.
    assert rig.plain(app[1], "print('helper' in sys.modules)").stdout.endswith(b"False\nend\n")


SAME = [
    "print(late_one.VALUE, late_one.helper.HELP, family.late_two.VALUE)",
    "from late_one import VALUE; print(VALUE)",
    "from family import late_two; print(late_two.VALUE)",
    "import late_one as again; print(again is sys.modules['late_one'], late_one.__file__, late_one.__spec__.origin)",
    "print(late_one, late_one.__spec__.cached, late_one.__package__, hasattr(late_one, 'nothing'))",
    "print(sorted(vars(late_one)), type(late_one))",
    "late_one.VALUE = 7; print(late_one.VALUE, late_one.f.__globals__['VALUE'])",
    "import pickle; print(pickle.loads(pickle.dumps(late_one.K)), pickle.loads(b'clate_one\\nK\\n.'))",
    "import inspect; print(inspect.getsource(late_one.f), inspect.getmodule(late_one.f), inspect.getsource(late_one))",
    "import importlib; print(importlib.reload(late_one).VALUE, importlib.reload(late_one).VALUE)",
    "import importlib.resources; print(importlib.resources.files('family').joinpath('late_two.py').read_text())",
    "import os\nif os.fork():\n    print(os.wait()[1])\nelse:\n    os._exit(late_one.VALUE)",
    "sys.exit(late_one.VALUE)",
    "late_one.f()",
    "late_one.nothing",
]


def test_the_command_is_the_same(rig: "Rig", app: tuple[str, str]) -> None:
    for text in SAME:
        plain, packed = (rig.plain(program, text) for program in app)
        assert (packed.returncode, packed.stdout) == (plain.returncode, plain.stdout), text
        assert packed.stderr.splitlines()[-1:] == plain.stderr.splitlines()[-1:], text


def test_tracebacks_through_a_late_module_show_its_source(rig: "Rig", app: tuple[str, str]) -> None:
    plain, packed = (rig.plain(program, "late_one.f()").stderr for program in app)
    assert b"return 1 / 0" in packed
    assert packed.splitlines()[-4:] == plain.splitlines()[-4:]


def test_an_import_that_fails_late_fails_at_each_touch(rig: "Rig", app: tuple[str, str]) -> None:
    (rig.directory / "bin" / "helper.py").unlink()
    untouched = rig.plain(app[1], "pass")
    assert (untouched.returncode, untouched.stderr) == (0, b"")
    twice = "for _ in 1, 2:\n try: late_one.helper.HELP\n except ModuleNotFoundError as e: print(e.name)"
    assert rig.plain(app[1], twice).stdout == b"3 4\nhelper\nhelper\nend\n"


@pytest.mark.skipif(not deferral.HAS_LAZY_IMPORTS, reason="this interpreter has no lazy imports (PEP 810)")
def test_names_of_a_late_module_do_not_load_it_where_imports_can_be_lazy(rig: "Rig", app: tuple[str, str]) -> None:
    (rig.directory / "bin" / "touched.py").write_text("from late_one import f\nfrom loud import *\nVALUE = 3\n")
    pack(rig, app[0], "pass")
    assert b"late_one" in rig.plain(app[1], LATE).stdout
    plain, packed = (rig.plain(program, "touched.f()") for program in app)
    assert (packed.returncode, packed.stdout) == (plain.returncode, plain.stdout)
    assert packed.stderr.splitlines()[-4:] == plain.stderr.splitlines()[-4:]


@pytest.mark.skipif(not deferral.HAS_LAZY_IMPORTS, reason="this interpreter has no lazy imports (PEP 810)")
def test_the_program_s_own_lazy_imports_stay_lazy(rig: "Rig", app: tuple[str, str]) -> None:
    (rig.directory / "bin" / "touched.py").write_text("lazy import colorsys\nVALUE = 3\n")
    pack(rig, app[0], "pass")
    assert rig.plain(app[1], "print('colorsys' in sys.modules)").stdout == b"3 4\nFalse\nend\n"
    assert rig.plain(app[1], "print(touched.colorsys.hsv_to_rgb(0, 0, 0))").stdout == b"3 4\n(0, 0, 0)\nend\n"


def test_a_newer_source_of_a_late_module_wins(rig: "Rig", app: tuple[str, str]) -> None:
    (rig.directory / "bin" / "late_one.py").write_text("VALUE = 1234\n")
    assert rig.plain(app[1], "print(late_one.VALUE)").stdout == b"3 4\n1234\nend\n"


def test_a_damaged_late_module_is_loaded_from_its_file(rig: "Rig", app: tuple[str, str]) -> None:
    path = Path(rig.directory / "app.pack")
    data = path.read_bytes()
    entries, area, *_ = container.read(memoryview(data))
    damaged = bytearray(data)
    damaged[len(data) - len(area) + entries["late_one"][container.OFFSET] + 9] ^= 0xFF
    path.unlink()
    path.write_bytes(damaged)
    run = rig.plain(app[1], "print(late_one.VALUE)")
    assert run.stdout == b"3 4\n1\nend\n"
    assert run.stderr.count(b"late_one.py is imported from its file, and not from the pack: ") == 1


def test_nothing_is_late_if_the_command_shows_a_difference(rig: "Rig", app: tuple[str, str]) -> None:
    made = pack(rig, app[0], "print(type(late_one))")
    assert b"(0 of them late)" in made.stdout
    assert b"did not print or return the same" in made.stderr


def test_one_run_of_several_that_touches_a_module_keeps_it_from_being_late(rig: "Rig", app: tuple[str, str]) -> None:
    pack(rig, app[0], "pass", "late_one.VALUE")
    assert b"'late_one'" not in rig.plain(app[1], LATE).stdout


def test_what_leads_to_a_loud_module_is_not_late(rig: "Rig", app: tuple[str, str]) -> None:
    (rig.directory / "bin" / "helper.py").write_text("print('loud')\nHELP = 2\n")
    pack(rig, app[0], "import sys")
    assert b"['family.late_two']" in rig.plain(app[1], LATE).stdout


TAKING = {
    "config": "limit = 1\ndef change():\n    global limit\n    limit = 9\n",
    "box/__init__": "",
    "box/inside": "VALUE = 5\n",
    "takes_a_value": "from config import limit\ndef get(): return limit\n",
    "takes_a_function": "from config import change\ndef get(): return change()\n",
    "takes_a_module": "from box import inside\ndef get(): return inside.VALUE\n",
}


def test_a_module_that_takes_a_value_of_another_takes_that_of_its_import(rig: "Rig") -> None:
    (rig.directory / "bin" / "box").mkdir()
    for name, text in TAKING.items():
        (rig.directory / "bin" / f"{name}.py").write_text(text)
    text = "import sys, config, takes_a_value, takes_a_function, takes_a_module\nconfig.limit\nexec(sys.argv[1])\n"
    script = rig.script("app", text)
    pack(rig, script, "pass")
    shown = rig.plain(str(rig.directory / "app"), LATE).stdout
    assert shown == b"['takes_a_function', 'takes_a_module']\n"
    for change in ("config.limit = 9", "config.change()"):
        for program in (script, str(rig.directory / "app")):
            assert rig.plain(program, f"{change}; print(takes_a_value.get())").stdout == b"1\n"


def test_without_the_option_nothing_is_late(rig: "Rig", app: tuple[str, str]) -> None:
    made = rig.plain(UNSNARL, "pack", app[0], "-o", str(rig.directory / "app.pack"), "--with", "pass")
    assert made.returncode == 0, made.stderr
    assert b"[]" in rig.plain(app[1], LATE).stdout


def test_an_unknown_way_to_check_is_refused(rig: "Rig") -> None:
    refused = rig.plain(UNSNARL, "pack", "x", "-o", "y", "--check", "nothing")
    assert refused.returncode == 2
    assert refused.stderr.startswith(b"error: --check knows no 'nothing'")
