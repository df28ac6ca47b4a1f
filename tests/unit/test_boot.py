"""``_unsnarl_boot``: what it observes while the installation waits, and that it puts everything back."""

import os
import subprocess
import sys

import pytest

from unsnarl.run_settings import VARIABLE, RunSettings

pytestmark = pytest.mark.needs_gil

LOADED = """
import sys
def loaded():
    return sorted(name for name in sys.modules if "unsnarl" in name)
"""

ORIGINALS = """
import _thread, os, _frozen_importlib_external
builtin = type(len)
def is_restored():
    functions = [getattr(_thread, name, len) for name in ("start_new_thread", "start_new", "start_joinable_thread")]
    functions += [os.fork, os.forkpty, os.chroot]
    loader = _frozen_importlib_external.ExtensionFileLoader
    return all(type(one) is builtin for one in functions) and loader.__init__.__module__ == loader.__module__
"""

EVENTS = {
    "a thread": "import threading; t = threading.Thread(target=int); t.start(); t.join()",
    "a thread of another name": "from _thread import start_new_thread as go; go(int, ())",
    "a fork": "import os; pid = os.fork() or os._exit(0); os.waitpid(pid, 0)",
    "ctypes": "import ctypes",
    "sub-interpreters": "import importlib.util as u; u.find_spec('_interpreters') or u.find_spec('_xxsubinterpreters')",
    "a look at the scheduler": "import unsnarl.gil",
    "a change of the root that fails": "import os\ntry: os.chroot('/no/such')\nexcept OSError: pass",
}

QUIET = {
    "nothing": "",
    "threading alone": "import threading, queue, logging",
    "extensions of the standard library": "import math, _json, _socket, _decimal",
    "a program": "import subprocess; subprocess.run(['/bin/true'])",
    "the primitives": "import unsnarl; unsnarl.Lock",
}


def run(program: str, settings: str | None = None, **more: str) -> "subprocess.CompletedProcess[str]":
    """Run a program as a child under ``unsnarl run`` is run."""
    text = RunSettings(main_pid=1).encode() if settings is None else settings
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UNSNARL", "PYTHON"))}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, VARIABLE: text, **more},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done


@pytest.mark.parametrize("event", EVENTS.values(), ids=EVENTS)
def test_the_scheduler_is_installed_before_it_has_work(event: str) -> None:
    """The last line looks without importing: that would install."""
    program = f"{LOADED}{ORIGINALS}before = loaded()\n{event}\nprint(before, is_restored(), 'unsnarl.gil' in loaded())"
    shown = run(program + "\nprint(sys.modules['unsnarl.gil'].installed())")
    assert shown.stdout == "['_unsnarl_boot'] True True\nTrue\n"


@pytest.mark.parametrize("event", QUIET.values(), ids=QUIET)
def test_nothing_is_installed_where_one_thread_runs(event: str) -> None:
    assert run(f"{LOADED}{event}\nprint('unsnarl.run_start' in loaded())").stdout == "False\n"


def test_the_names_that_threading_keeps_are_put_back() -> None:
    text = """
import threading
threading.Thread(target=int).start()
print({type(value) for name, value in vars(threading).items() if name.startswith("_start_")} == {type(len)})
"""
    assert run(text).stdout == "True\n"


@pytest.mark.parametrize("before", ["pass", "threading.Thread(target=event.wait).start()"])
def test_threading_may_have_been_there_before(before: str) -> None:
    """Another file of site-packages may import it, and even start a thread."""
    text = f"""
import sys
import _unsnarl_boot
while _unsnarl_boot.observed:  # as if it had not been imported yet
    owner, name, original, ours = _unsnarl_boot.observed.pop()
    setattr(owner, name, original)
del sys.modules["_unsnarl_boot"]
import threading
event = threading.Event()
{before}
import _unsnarl_boot
t = threading.Thread(target=int); t.start(); t.join()
event.set()
names = {{type(value) for name, value in vars(threading).items() if name.startswith("_start_")}}
print(sys.modules["unsnarl.gil"].installed(), names == {{type(len)}})
"""
    assert run(text).stdout == "True True\n"


def test_a_fork_after_the_installation_has_one_thread() -> None:
    """From 3.12 on CPython warns of a fork with more than one."""
    text = "import os, warnings\nwarnings.simplefilter('error')\npid = os.fork() or os._exit(0)\nos.waitpid(pid, 0)"
    for _ in range(5):
        run(text)


def test_the_program_may_have_changed_its_environment_and_prefix() -> None:
    text = "import os, sys\nos.environ.clear(); sys.prefix = '/nowhere'\nimport unsnarl; print(unsnarl.gil.installed())"
    assert run(text).stdout == "True\n"


def test_usual_settings_are_known_by_their_text() -> None:
    """What this module compares is what ``run_settings`` writes."""
    import _unsnarl_boot

    settings = RunSettings(main_pid=1)
    assert settings.encode() == f"{_unsnarl_boot._USUAL}1 abi={settings.abi} prefix={settings.prefix}"


@pytest.mark.parametrize("settings", [RunSettings(stats="main"), RunSettings(patch=True), RunSettings(slice_ms=5.0)])
def test_other_settings_do_not_wait(settings: RunSettings) -> None:
    settings.main_pid = 1
    assert run(f"{LOADED}print('unsnarl.run_start' in loaded())", settings.encode()).stdout == "True\n"


def test_settings_of_the_native_command_are_for_the_process_it_became() -> None:
    """They name no interpreter: another process must not take them for its own."""
    text = f"{LOADED}import os\nprint(loaded(), os.environ['{VARIABLE}'].endswith('prefix=?'))"
    unknown = "kernel_hints=yes children=yes stats=no patch=no green=no pack= main_pid=1 abi=? prefix=?"
    shown = run(text + "\nimport unsnarl; print(unsnarl.gil.installed())", unknown)
    assert shown.stdout == "['_unsnarl_boot'] True\nFalse\n"


def test_the_first_process_to_read_the_settings_can_be_the_main_one() -> None:
    text = f"import os; print(f' main_pid={{os.getpid()}} ' in os.environ['{VARIABLE}'])"
    assert run(text, RunSettings(main_pid=0).encode()).stdout == "True\n"


@pytest.mark.parametrize("more", [{"UNSNARL": "off"}, {VARIABLE: ""}])
def test_switched_off_nothing_is_observed(more: dict[str, str]) -> None:
    assert run(f"{LOADED}{ORIGINALS}print(is_restored())", **more).stdout == "True\n"


def test_ctrl_c_during_a_late_installation_is_the_programs() -> None:
    text = """
import threading, unsnarl.run_start
def interrupted(text):
    raise KeyboardInterrupt
unsnarl.run_start.install_late = interrupted
try:
    threading.Thread(target=int).start()
except KeyboardInterrupt:
    print("handled")
threading.Thread(target=int).start()
"""
    assert run(text).stdout == "handled\n"


def test_a_refusal_comes_with_the_first_thread() -> None:
    text = """
import os, sys, io, threading, unsnarl
os.environ["UNSNARL_RUN"] = ""
class Refuses:
    def install(self, **options): raise unsnarl.UnsupportedInterpreter("no GIL", "use another")
sys.modules["unsnarl.gil"] = unsnarl.gil = Refuses()
sys.__stderr__, sys.stderr = sys.stdout, io.StringIO()
import _unsnarl_boot
_unsnarl_boot.settings = _unsnarl_boot.settings.replace("main_pid=1 ", f"main_pid={os.getpid()} ")
for _ in range(2):
    threading.Thread(target=int).start()
print(repr(sys.stderr.getvalue()))
"""
    said, own = run(text).stdout.splitlines()
    assert said == "unsnarl: the program runs without the GIL scheduler: no GIL (hint: use another)"
    assert own == "''"
