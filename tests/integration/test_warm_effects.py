"""Side effects of a run happen once: learning runs and servers import only modules without lasting effects."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.extensions import compiler
from tests.integration.conftest import UNSNARL
from tests.integration.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Rig

WARM = "print('_unsnarl_warm' in sys.modules)\n"


def script_of(rig: Rig, module: str) -> str:
    """Write a command that imports a module of its own."""
    (rig.directory / "bin" / "mod.py").write_text(module)
    return rig.script("who", "import sys, mod\n" + WARM)


EFFECTS = {
    "appends": "open({place!r} + '/made', 'a').write('x')",
    "creates": "import os; os.close(os.open({place!r} + '/made', os.O_CREAT | os.O_EXCL | os.O_WRONLY))",
    "catches everything": "try:\n    open({place!r} + '/made', 'a').write('x')\nexcept:\n    pass",
    "removes": "import os; os.remove({place!r} + '/there')",
    "renames": "import os; os.replace({place!r} + '/there', {place!r} + '/made')",
    "cuts": "import os; os.truncate({place!r} + '/there', 0)",
    "changes a mode": "import os; os.chmod({place!r} + '/there', 0o600)",
    "links": "import os; os.symlink('there', {place!r} + '/made')",
    "removes all": "import shutil; shutil.rmtree({place!r} + '/full')",
    "a database": "import sqlite3; sqlite3.connect({place!r} + '/made').close()",
    "a program": "import subprocess; subprocess.call(['touch', {place!r} + '/made'])",
    "a shell": "import os; os.system('touch ' + {place!r} + '/made')",
    "a process": "import os\nif os.fork() == 0:\n    open({place!r} + '/made', 'w')\n    os._exit(0)",
    "a directory, and what else": "import os; os.mkdir({place!r} + '/made'); os.rmdir({place!r} + '/made')",
}


@pytest.mark.parametrize("name", EFFECTS)
def test_what_is_not_to_happen_twice_does_not_happen_while_learning(rig: Rig, name: str) -> None:
    place = rig.directory / "place"
    (place / "full" / "below").mkdir(parents=True)
    (place / "there").write_text("text")
    (place / "there").chmod(0o640)
    before = {path.name: path.lstat().st_mtime_ns + path.lstat().st_mode for path in [place, *place.rglob("*")]}
    script = script_of(rig, EFFECTS[name].format(place=str(place)) + "\n")
    rig.start(script)
    assert b"while it is imported" in rig.verb("why", script).stdout
    after = {path.name: path.lstat().st_mtime_ns + path.lstat().st_mode for path in [place, *place.rglob("*")]}
    after["place"] = before["place"] if "directory" in name else after["place"]
    assert after == before


def test_work_that_a_run_does_by_an_import_is_done_once_a_run(rig: Rig) -> None:
    done = rig.directory / "done"
    jobs = rig.directory / "bin" / "jobs"
    jobs.mkdir()
    (jobs / "__init__.py").write_text("")
    (jobs / "send.py").write_text(f"open({str(done)!r}, 'a').write('sent\\n')\n")
    (rig.directory / "bin" / "look.py").write_text("")
    text = "import importlib, sys\nprint('look' in sys.modules)\n"
    script = rig.script("runner", text + "for name in sys.argv[1:]: importlib.import_module(name)\n")
    rig.start(script)
    rig.served(script, "jobs.send", "look")
    # The next server has the one module, and not the other.
    until(lambda: rig.warm(script).stdout == b"True\n")
    assert done.read_text() == "sent\n"
    rig.served(script, "jobs.send")
    assert done.read_text() == "sent\n" * 2
    assert b"jobs.send is not imported ahead: jobs.send writes a file" in rig.verb("why", script).stdout


HARMLESS = {
    "nothing": "import os; open(os.devnull, 'w').close()",
    "what is there": "import os; os.makedirs({place!r}, exist_ok=True)",
    "a directory": "import os; os.makedirs({place!r} + '/new/below', exist_ok=True)",
    "a temporary file": "import tempfile\nwith tempfile.TemporaryFile() as file: file.write(b'x')",
    "a named one": "import tempfile\nwith tempfile.NamedTemporaryFile('w') as file: file.write('x')",
    "a temporary directory": (
        "import os, tempfile\nwith tempfile.TemporaryDirectory() as name:\n"
        "    os.mkdir(name + '/sub')\n    open(name + '/sub/file', 'w').close()\n"
        "    os.rename(name + '/sub', name + '/b')\ndel name"
    ),
    "a library": "import ctypes.util; ctypes.util.find_library('c')",
    "a database in memory": "import sqlite3; sqlite3.connect(':memory:').close()",
    "a look at a process": "import os; os.kill(os.getpid(), 0)",
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_leaves_nothing_behind_is_imported_ahead(rig: Rig, name: str) -> None:
    place = rig.directory / "place"
    place.mkdir()
    script = script_of(rig, HARMLESS[name].format(place=str(place)) + "\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True\n"


def test_a_directory_of_some_runs_is_taken_back_where_its_module_is_left_to_them(rig: Rig) -> None:
    made = rig.directory / "made"
    script_of(rig, f"import os\nos.makedirs({str(made / 'below')!r})\nos.system('true')\n")
    script = rig.script("who", "import sys\nif sys.argv[1:]:\n    import mod\n" + WARM)
    rig.start(script)
    assert b"mod is not imported ahead: mod runs a program" in rig.verb("why", script).stdout
    assert not made.exists()


def test_a_directory_that_each_run_makes_is_left_to_those_beside(rig: Rig) -> None:
    made = rig.directory / "made"
    script = script_of(rig, f"import os\nos.makedirs({str(made / 'below')!r}, exist_ok=True)\nos.system('true')\n")
    rig.start(script, umask=0o027)
    assert (made / "below").is_dir()
    # A run that finds it finds it as if a run had made it.
    assert [path.stat().st_mode & 0o777 for path in (made, made / "below")] == [0o750, 0o750]


@pytest.mark.parametrize(
    "call", ["os.makedirs({made!r}, exist_ok=True)", "pathlib.Path({made!r}).mkdir(exist_ok=True)"]
)
def test_a_directory_that_is_removed_is_made_anew(rig: Rig, call: str) -> None:
    made = rig.directory / "made"
    script = script_of(rig, f"import os, pathlib\n{call.format(made=str(made))}\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True\n"
    made.rmdir()
    assert rig.warm(script).stdout == b"False\n"
    assert made.is_dir()


DECISIONS = {
    "asked for": "VALUE = 'test' in sys.argv",
    "asked for in a copy": "VALUE = 'test' in sys.argv[1:]",
    "counted": "VALUE = len(sys.argv) > 2",
    "one of them": "VALUE = sys.argv[1] == 'test'",
    "gone through": "VALUE = any(word.startswith('te') for word in sys.argv)",
    "compared": "VALUE = sys.argv[1:] == ['test']",
}


@pytest.mark.parametrize("name", DECISIONS)
def test_what_is_decided_by_the_arguments_is_decided_by_each_run(rig: Rig, name: str) -> None:
    """As Django's settings, which the command finds by a name in a variable."""
    (rig.directory / "bin" / "settings.py").write_text(f"import sys\n{DECISIONS[name]}\n")
    (rig.directory / "bin" / "look.py").write_text("")
    text = "import importlib, sys\nprint('look' in sys.modules, importlib.import_module('settings').VALUE)\n"
    script = rig.script("manage", text + "import look\n")
    rig.start(script)
    assert rig.served(script, "other").stdout == b"True False\n"
    until(lambda: b"settings is not imported ahead: settings" in rig.verb("why", script).stdout)
    runs: list[bytes] = []

    def is_served() -> bool:
        """Run it; the server of what was learned again may be on its way still."""
        run = rig.served(script, "test")
        runs.append(run.stdout)
        return run.returncode == 0

    until(is_served)
    assert runs[-1] == rig.plain(script, "test").stdout.replace(b"False", b"True", 1)


def test_the_name_of_the_program_and_copies_of_the_arguments_decide_nothing(rig: Rig) -> None:
    text = "import sys\nNAME = sys.argv[0].rpartition('/')[2]\nWORDS, REST = list(sys.argv), sys.argv[1:]\n"
    script = script_of(rig, text)
    rig.start(script)
    assert rig.served(script, "test").stdout == b"True\n"


def test_a_learning_run_calls_no_function_that_an_import_has_registered_for_the_end(rig: Rig) -> None:
    place = rig.directory / "place"
    place.mkdir()
    body = f"import atexit\natexit.register(lambda: open({str(place)!r} + '/made', 'a').write('x'))\n"
    script = script_of(rig, body)
    assert rig.verb("start", "--", script).returncode == 0, rig.verb("why", script).stdout
    assert not [*place.iterdir()]
    assert rig.warm(script).stdout == b"True\n"
    assert (place / "made").read_text() == "x"


def test_what_imports_print_at_the_end_of_a_run_is_none_of_their_printing(rig: Rig) -> None:
    script = script_of(rig, "import atexit\natexit.register(print, 'the end')\n")
    assert rig.verb("start", "--", script).returncode == 0, rig.verb("why", script).stdout
    assert rig.warm(script).stdout == b"True\nthe end\n"


def test_a_learning_run_removes_temporary_directories_that_the_end_of_a_run_removes(rig: Rig) -> None:
    body = "import atexit, os, shutil, tempfile\npath = tempfile.mkdtemp()\natexit.register(shutil.rmtree, path)\n"
    script = script_of(rig, body + "open(path + '/note', 'w').close()\n")
    rig.env["TMPDIR"] = str(rig.directory)
    rig.start(script)
    assert b"makes the temporary" in rig.verb("why", script).stdout
    assert not list(rig.directory.rglob("note"))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_module_that_prints_is_named(rig: Rig, stream: str) -> None:
    script = script_of(rig, f"import sys\nprint('a word', file=sys.{stream})\n")
    rig.start(script)
    assert b"mod prints while it is imported" in rig.verb("why", script).stdout


@pytest.mark.parametrize("ends", ["ENDS_AT_FORK", "ENDS_SOON", ""])
def test_threads_that_a_library_ends_at_a_fork_rule_out_nothing(rig: Rig, tmp_path: Path, ends: str) -> None:
    library = compiler.shared_library("threads", tmp_path)
    script = script_of(rig, f"import ctypes\nlibrary = ctypes.CDLL({str(library)!r})\n")
    environ, is_ended = rig.env | ({ends: "1"} if ends else {}), ends == "ENDS_AT_FORK"
    assert rig.verb("start", "--", script, env=environ).returncode == (0 if is_ended else 1)
    if is_ended:
        assert rig.served(script, env=environ).stdout == b"True\n"
    else:
        assert b"leaves a thread running" in rig.verb("why", script, env=environ).stdout


def test_what_a_learning_run_has_made_that_is_ended_early_is_put_in_order(rig: Rig) -> None:
    made = rig.directory / "home" / "cache"
    rig.env["HOME"] = str(made.parent)
    made.parent.mkdir()
    text = (
        f"import os, tempfile, time\nos.mkdir({str(made)!r})\ntempfile.mkstemp(dir={str(made)!r})\ntime.sleep(3600)\n"
    )
    script = script_of(rig, text)
    starting = subprocess.Popen([UNSNARL, "warm", "start", "--", script], env=rig.env)
    try:
        until(lambda: made.exists() and list(made.iterdir()))
        rig.verb("stop")
        until(lambda: made.exists() and not list(made.iterdir()))
        until(lambda: made.stat().st_mode & 0o777 == 0o777 & ~mask())
    finally:
        starting.kill()
        starting.wait()


def mask() -> int:
    """Return the mask of file modes."""
    given = os.umask(0o077)
    os.umask(given)
    return given
