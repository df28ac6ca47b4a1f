"""``unsnarl run --patch`` in programs with import mechanisms of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Programs

WRAPPED = """
import sys, types
from importlib.util import LazyLoader

class Finder:
    # As Mercurial's lazy imports do: each existing finder is wrapped.
    def __init__(self, inner):
        self.inner = inner

    def find_spec(self, name, path=None, target=None):
        spec = self.inner.find_spec(name, path, target)
        if IS_LAZY and spec is not None and name == "multiprocessing":
            spec.loader = LazyLoader(spec.loader)
        return spec

sys.meta_path[:] = [Finder(finder) for finder in sys.meta_path]
import multiprocessing

assert type(multiprocessing.Lock()).__module__ == "unsnarl.ipc", type(multiprocessing.Lock())
assert type(multiprocessing) is types.ModuleType

from unsnarl import patching

patching.unpatch()
assert type(multiprocessing.Lock()).__module__ == "multiprocessing.synchronize"
"""


@pytest.mark.parametrize("is_lazy", [False, True])
def test_finders_with_others_around_them_find_multiprocessing(programs: Programs, *, is_lazy: bool) -> None:
    programs.write("app.py", f"IS_LAZY = {is_lazy}{WRAPPED}")
    outcome = programs.unsnarl("run", "--patch", "app.py")
    assert outcome.status == 0, outcome.complaint


def test_a_look_for_multiprocessing_does_not_use_the_patch_up(programs: Programs) -> None:
    programs.write(
        "app.py",
        "from importlib.util import find_spec; find_spec('multiprocessing')\n"
        "import multiprocessing; assert type(multiprocessing.Lock()).__module__ == 'unsnarl.ipc'\n",
    )
    outcome = programs.unsnarl("run", "--patch", "app.py")
    assert outcome.status == 0, outcome.complaint


SWITCHED_OFF = """
import threading, unsnarl
unsnarl.patch()
print(threading.Event.__base__.__module__)
"""


@pytest.mark.parametrize(("switch", "module"), [("off", "builtins"), ("on", "unsnarl")])
def test_switched_off_nothing_is_patched(programs: Programs, switch: str, module: str) -> None:
    outcome = programs.python(programs.write("program.py", SWITCHED_OFF), env={"UNSNARL": switch})
    assert (outcome.status, outcome.stdout.decode().partition(".")[0].strip()) == (0, module), outcome.complaint


MODULES = (
    "import sys; print(sorted(name for name in sys.modules if not name.startswith(('unsnarl', '_unsnarl_boot'))))\n"
)


def test_nothing_is_imported_that_the_program_does_not_import(programs: Programs) -> None:
    programs.write("app.py", MODULES)
    assert programs.unsnarl("run", "--patch", "app.py").stdout == programs.python("app.py").stdout


def test_a_queue_of_the_programs_own_is_its_own(programs: Programs) -> None:
    programs.write("queue.py", "MINE = True\nclass Queue: pass\n")
    programs.write(
        "app.py", "import queue, threading\nprint(queue.MINE, queue.Queue.__base__, threading.Event.__base__)\n"
    )
    outcome = programs.unsnarl("run", "--patch", "app.py")
    assert (outcome.status, outcome.stdout) == (0, b"True <class 'object'> <class 'unsnarl.Event'>\n"), (
        outcome.complaint
    )


UNPATCHED = """
import unsnarl
unsnarl.patch()
import queue
unsnarl.unpatch()
import threading
print(queue.Queue.__base__, threading.Event.__base__)
"""


def test_what_is_imported_after_unpatch_stays_as_it_is(programs: Programs) -> None:
    outcome = programs.python(programs.write("program.py", UNPATCHED))
    assert (outcome.status, outcome.stdout) == (0, b"<class 'object'> <class 'object'>\n"), outcome.complaint


COPIES = """
import sys, unsnarl
from importlib import util
unsnarl.patch()
for name in ("queue", "threading"):
    spec = util.find_spec(name)
    assert "def " in spec.loader.get_source(name)
    copy = util.module_from_spec(spec)
    spec.loader.exec_module(copy)
import queue, threading
print(queue.Queue.__base__, threading.Event.__base__)
gone = sys.modules.pop("queue"), sys.modules.pop("threading")
unsnarl.unpatch()
print(gone[0].Queue.__base__, gone[1].Event.__base__)
import queue, threading
print(queue.Queue.__base__, threading.Event.__base__)
"""


def test_copies_of_the_modules_are_not_changed(programs: Programs) -> None:
    outcome = programs.python(programs.write("program.py", COPIES))
    patched, ended, again = outcome.stdout.decode().splitlines()
    assert (outcome.status, patched) == (0, "<class 'unsnarl.Queue'> <class 'unsnarl.Event'>"), outcome.complaint
    assert ended == again == "<class 'object'> <class 'object'>"


def test_a_patched_module_still_runs_as_a_program(programs: Programs) -> None:
    outcome = programs.unsnarl("run", "--patch", "-m", "queue")
    assert (outcome.status, outcome.complaint) == (0, "")
