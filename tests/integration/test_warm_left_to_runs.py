"""A module that each run has to import itself: what it prints, asks and changes is as in a plain run, in that order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.test_warm_circumstances import script_of
from tests.integration.test_warm_commands import on_a_terminal
from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

AHEAD = "print([name for name in ('quiet', 'after', 'late') if name in sys.modules])\n"


def command(rig: Rig, text: str, **modules: str) -> str:
    """Write a command and the modules that it finds beside itself."""
    for name, body in modules.items():
        (rig.directory / "bin" / f"{name}.py").write_text(body)
    return rig.script("who", text)


def until_ahead(rig: Rig, script: str, *expected: str) -> None:
    """Run a command until a server has just these modules of its runs ahead."""
    until(lambda: rig.served(script, "ask").stdout.split(b"\n")[0] == str([*expected]).encode())


@pytest.mark.parametrize("is_on_terminal", [False, True], ids=["pipes", "terminal"])
def test_what_imports_print_comes_once_and_in_order(rig: Rig, is_on_terminal: bool) -> None:
    loud = "import sys\nprint('first', end=' ')\nsys.stderr.write('second ')\nsys.stderr.flush()\nprint('third')\n"
    text = "import sys, quiet\nprint('before')\nimport loud\nprint('between')\nimport after\nprint(sys.argv)\n"
    script = command(rig, text, quiet="", after="print('after')\n", loud=loud)
    if is_on_terminal:
        plain = on_a_terminal(rig, script, "word")
        assert on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)[0] == 0
        for _ in range(3):
            assert on_a_terminal(rig, UNSNARL, "warm", "run", "--require", "--", script, "word") == plain
    else:
        there = rig.plain(script, "word")
        rig.start(script)
        for _ in range(3):
            warm = rig.served(script, "word")
            assert (warm.stdout, warm.stderr) == (there.stdout, there.stderr)
    assert b"loud is not imported ahead: loud prints" in rig.verb("why", script).stdout


def test_what_comes_before_it_and_what_it_imports_are_imported_ahead(rig: Rig) -> None:
    text = f"import sys, quiet\nif sys.argv[1:]: {AHEAD}import loud, after\nprint('after' in sys.modules)\n"
    script = command(rig, text, quiet="", after="", late="", loud="import late\nprint('loud')\n")
    rig.start(script)
    assert rig.served(script).stdout == b"loud\nTrue\n"
    until_ahead(rig, script, "quiet", "late")
    assert rig.served(script).stdout == b"loud\nTrue\n"


def test_a_module_of_some_runs_that_imports_it_is_left_to_them(rig: Rig) -> None:
    """Else it would be imported ahead with that module, and a run would not print what it prints."""
    text = f"import sys\nif sys.argv[1:]: {AHEAD}import loud\nif sys.argv[1:]: __import__('late')\n"
    script = command(rig, text, quiet="", late="import loud\n", loud="print('loud')\n")
    rig.start(script)
    assert rig.served(script, "ask").stdout == b"[]\nloud\n"
    said = b"late is not imported ahead: late imports loud, which is left to the runs"
    until(lambda: said in rig.verb("why", script).stdout or rig.warm(script, "ask").stdout != b"[]\nloud\n")
    for words in ([], ["ask"], []):
        assert rig.warm(script, *words).stdout == rig.plain(script, *words).stdout


FLAG = "from {} import FLAG as VALUE\n"
CHANGED = {
    "an attribute": ("import conf\nconf.FLAG = sys.argv[1]\n", FLAG.format("conf")),
    "an attribute by its name": ("import conf\nsetattr(conf, 'FLAG', sys.argv[1])\n", FLAG.format("conf")),
    "an attribute of a submodule": ("from pack import conf\nconf.FLAG = sys.argv[1]\n", FLAG.format("pack.conf")),
    "an item": ("from conf import ALL\nALL['one'] = sys.argv[1]\n", "from conf import ALL\nVALUE = ALL.get('one')\n"),
    "a module": (
        "import types\nsys.modules['made'] = types.SimpleNamespace(FLAG=sys.argv[1])\n",
        "try: from made import FLAG as VALUE\nexcept ImportError: VALUE = 0\n",
    ),
    "a variable": ("import os\nos.environ['FLAG'] = sys.argv[1]\n", "import os\nVALUE = os.environ.get('FLAG')\n"),
    "a file": ("open(DATA, 'w').write(sys.argv[1])\n", "VALUE = open(DATA).read()\n"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_it_changes_is_there_where_others_read_it(rig: Rig, what: str) -> None:
    change, read = (text.replace("DATA", repr(str(rig.directory / "data"))) for text in CHANGED[what])
    (rig.directory / "data").write_text("")
    (rig.directory / "bin" / "pack").mkdir()
    (rig.directory / "bin" / "pack" / "__init__.py").write_text("")
    (rig.directory / "bin" / "pack" / "conf.py").write_text("FLAG = 0\n")
    script = command(
        rig, "import sys, loud\nprint(loud.late.VALUE)\n", conf="FLAG, ALL = 0, {}\n", late=read,
        loud=f"import sys\nprint('loud')\n{change}import late\n",
    )  # fmt: skip
    rig.start(script)
    assert rig.served(script, "one").stdout == b"loud\none\n"
    until(lambda: "replaced" in rig.log())  # by a server that has considered what the run has loaded
    for word in ("two", "three"):
        assert rig.served(script, word).stdout == f"loud\n{word}\n".encode()


@pytest.mark.parametrize(
    "what",
    [
        "print('debugging')",
        "print('long' * 30000)",
        "os.write(2, b'by number')",
        "__import__('threading').Thread(target=print, args=('seen',)).start()",
    ],
    ids=["output", "long output", "by number", "thread"],
)
@pytest.mark.parametrize("is_on_terminal", [False, True], ids=["pipes", "terminal"])
def test_what_only_a_run_may_do_is_left_to_the_runs_with_a_variable_set(
    rig: Rig, what: str, is_on_terminal: bool
) -> None:
    text = f"import os, sys, threading\nVALUE = sys.stdout.isatty()\nif os.environ.get('DEBUG'):\n    {what}\n"
    script = script_of(rig, f"{text}    for one in threading.enumerate()[1:]: one.join()\n")
    rig.start(script)
    assert rig.served(script).stdout == b"False warm\n"
    plain_env, rig.env = rig.env, rig.env | {"DEBUG": "1"}
    for _ in range(2):
        if is_on_terminal:
            assert on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)[0] == 0
            status, shown = on_a_terminal(rig, UNSNARL, "warm", "run", "--require", "--", script)
            assert (status, shown) == (0, on_a_terminal(rig, script)[1].replace(b"True plain", b"True warm"))
        else:
            rig.start(script)
            plain, warm = rig.plain(script), rig.served(script)
            assert warm.stdout == plain.stdout.replace(b"False plain", b"False warm")
            assert warm.stderr == plain.stderr
    rig.env = plain_env
    assert rig.served(script).stdout == b"False warm\n"
