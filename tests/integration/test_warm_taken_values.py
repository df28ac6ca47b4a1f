"""A module that takes a value which code of the command has changed before it is imported, or changes one itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.test_warm_left_to_runs import command
from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

PRINT = "print(app.MODE, 'word' in sys.argv)\n"
IN_FUNCTION = (
    f"import sys\nfrom cfg import held\ndef main():\n    held.append(sys.argv[1:])\n    import app\n    {PRINT}main()\n"
)
OF_STREAM = (
    "import sys, io\ndef wrap():\n    sys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=True)\n"
    "wrap()\nimport app\nprint(app.STREAM is sys.stdout)\n"
)
LOUD = "import sys, cfg\ncfg.load(sys.argv[1:])\nprint('loud')\n"
CFG = "VALUE, held = [], []\ndef load(value):\n    global VALUE\n    VALUE = [*value]\n"
OWN = {
    "a call of the own file": (f"import sys, cfg\ncfg.load(sys.argv[1:])\nimport app\n{PRINT}", "MODE = cfg.VALUE\n"),
    "a method in a function": (IN_FUNCTION, "MODE = [*cfg.held]\n"),
    "a stream": (OF_STREAM, "import sys\nSTREAM = sys.stdout\n"),
    "a module that prints": (f"import sys, loud, app\n{PRINT}", "import deep\nMODE = deep.MODE\n"),
    "a signal": (
        f"import sys, signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\nimport app\n{PRINT}",
        "import signal\nMODE = signal.getsignal(signal.SIGUSR1)\n",
    ),
}


def check(rig: Rig, script: str, *calls: tuple[str, ...]) -> None:
    """Compare calls with plain ones, before and after servers have learned what runs load."""
    there = {call: rig.plain(script, *call).stdout for call in calls}
    rig.start(script)
    for _ in range(2):
        for call in calls:
            assert rig.served(script, *call).stdout == there[call]
            until(lambda: not [*rig.house.glob("learn-*"), *rig.house.glob("*.news")] and [*rig.house.glob("*.sock")])


@pytest.mark.parametrize("kind", OWN)
def test_a_module_finds_what_the_command_has_changed_before(rig: Rig, kind: str) -> None:
    text, app = OWN[kind]
    script = command(rig, text, cfg=CFG, loud=LOUD, app=f"import cfg\n{app}", deep="import cfg\nMODE = cfg.VALUE\n")
    check(rig, script, ("word",), ("other", "word"), ())


def test_a_module_that_comes_out_as_in_a_run_is_imported_ahead(rig: Rig) -> None:
    text = (
        "import sys, cfg\ncfg.load(sys.argv[1:])\nprint([name for name in ('app', 'deep') if name in sys.modules])\n"
        "import app\n"
    )
    body = "import deep\nLIST, COUNT = [], 0\ndef count():\n    global COUNT\n    COUNT += 1\n    LIST.append(1)\n"
    script = command(rig, f"{text}app.count()\n", cfg=CFG, app=body, deep="from cfg import held\nNAMES = {'a', 'b'}\n")
    rig.start(script)
    assert rig.served(script).stdout == b"[]\n"
    until(lambda: rig.served(script).stdout == b"['app', 'deep']\n")


def test_a_module_of_some_runs_does_not_enter_itself_in_all(rig: Rig) -> None:
    text = "import sys, names\nif sys.argv[1:]:\n    import one\nelse:\n    import two\nprint(names.ALL)\n"
    modules = {name: f"import names\nnames.ALL.append('{name}')\n" for name in ("one", "two")}
    script = command(rig, text, names="ALL = []\n", **modules)
    check(rig, script, ("word",), ())
    assert b"one is not imported ahead: one changes names.ALL" in rig.verb("why", script).stdout
