"""A module that changes the process it is imported into does not change runs that have not imported it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

CHANGES = {
    "a function": "import json; json.dumps = lambda *words, **named: 'changed'",
    "a method": "import json; json.JSONEncoder.encode = lambda self, value: 'changed'",
    "a built-in function": "import builtins; builtins.input = lambda words: 'changed'",
    "a hook": "import sys; sys.excepthook = lambda *words: None",
    "logging": "import logging; logging.basicConfig(level=logging.DEBUG)",
    "the environment": "import os; os.environ['CHANGED'] = '1'",
    "a signal": "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
    "the path": "import sys; sys.path.append('/nonexistent')",
    "warnings": "import warnings; warnings.simplefilter('error')",
    "a stream": "import io, sys; sys.stdout = io.TextIOWrapper(sys.stdout.buffer)",
    "a terminal": "import readline",
    "memory": "import mmap; shared = mmap.mmap(-1, 8)",
    "a limit": "import resource as r; r.setrlimit(r.RLIMIT_NOFILE, (99, r.getrlimit(r.RLIMIT_NOFILE)[1]))",
}
PLACES = {
    "imported by name": "if '--trace' in sys.argv: importlib.import_module('tracer')\n",
    "in a branch": "if '--trace' in sys.argv:\n    import tracer\n",
    "in a function": "def trace():\n    import tracer\nif '--trace' in sys.argv: trace()\n",
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_module_that_changes_the_process_is_left_to_who_asks_for_it(rig: Rig, name: str) -> None:
    (rig.directory / "bin" / "tracer.py").write_text(CHANGES[name] + "\n")
    script = rig.script("lazy", f"import sys, importlib\n{PLACES['in a branch']}print('tracer' in sys.modules)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"False\n"
    said = rig.verb("why", script).stdout
    assert b"tracer is not imported ahead: tracer changes" in said


@pytest.mark.parametrize("name", PLACES)
def test_wherever_a_module_is_asked_for_it_changes_the_runs_that_do(rig: Rig, name: str) -> None:
    (rig.directory / "bin" / "tracer.py").write_text(CHANGES["a function"] + "\n")
    (rig.directory / "bin" / "look.py").write_text("")
    text = f"import importlib, json, sys\nahead = 'look' in sys.modules\n{PLACES[name]}print(ahead, json.dumps([1]))\n"
    script = rig.script("lazy", text + "importlib.import_module('look')\n")
    rig.start(script)
    assert rig.served(script, "--trace").stdout == b"False changed\n"
    until(lambda: rig.warm(script).stdout == b"True [1]\n")
    assert rig.served(script, "--trace").stdout == b"True changed\n"


HARMLESS = {
    "nothing": "VALUE = 1",
    "a library": "import json, decimal, logging, asyncio, concurrent.futures, email.message, ctypes, multiprocessing",
    "its own warnings": "import warnings\nclass Old(Warning): pass\nwarnings.simplefilter('ignore', Old)",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_a_module_that_changes_nothing_is_imported_ahead(rig: Rig, name: str) -> None:
    (rig.directory / "bin" / "quiet.py").write_text(HARMLESS[name] + "\n")
    script = rig.script("lazy", "import sys\ndef run():\n    import quiet\nprint('quiet' in sys.modules)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True\n"


def test_what_a_commands_own_package_changes_is_its_own_affair(rig: Rig) -> None:
    """As httpie, whose script imports only the module that imports the others."""
    package = rig.directory / "bin" / "own"
    package.mkdir()
    (package / "__init__.py").write_text("def main():\n    import own.core\n")
    (package / "core.py").write_text(CHANGES["a function"] + "\n")
    script = rig.script("call", "import sys\nfrom own import main\nprint('own.core' in sys.modules)\nmain()\n")
    rig.start(script)
    assert rig.served(script).stdout == b"False\n"
    until(lambda: rig.warm(script).stdout == b"True\n")


def test_what_no_run_may_share_has_the_command_run_plainly(rig: Rig) -> None:
    (rig.directory / "bin" / "mod.py").write_text(CHANGES["memory"] + "\n")
    script = rig.script("who", "import mod\n")
    assert rig.verb("start", "--", script).returncode == 1
    assert b"an import changes" in rig.verb("why", script).stdout
