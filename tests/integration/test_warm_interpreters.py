"""The interpreter of a command, however it is named: a program, a script that looks for one, a name on PATH.

Invariant: warm or plain, the command is run by the interpreter that it would find by itself.
"""

import _imp
import os
import shlex
import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import NOT_WARM, UNSNARL
from unsnarl.warm.importing import preload

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Rig

WHO = "import os, sys\nprint(os.environ.get('CHOSEN'), '_unsnarl_warm' in sys.modules)\n"


def wrapper(path: "Path", chosen: str = "$(cat chosen)") -> str:
    """Write an interpreter that is a script, and looks into the caller's directory."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\nCHOSEN={chosen} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("how", ["by name", "by its first line"])
def test_an_interpreter_that_is_a_script_finds_its_own_anew(rig: "Rig", how: str) -> None:
    python = wrapper(rig.directory / "tools" / "python3")
    script = rig.directory / "bin" / "who"
    script.write_text(f"#!{python}\n{WHO}")
    script.chmod(0o755)
    words = [python, str(script)] if how == "by name" else [str(script)]
    (rig.directory / "work" / "chosen").write_text("one")
    started = rig.plain(UNSNARL, "warm", "start", "--", *words)
    assert started.returncode == 1
    assert b"name the one it finds" in started.stderr
    for chosen in ("one", "other"):
        (rig.directory / "work" / "chosen").write_text(chosen)
        assert rig.warm(*words).stdout == f"{chosen} False\n".encode()
    assert rig.served(*words).returncode == NOT_WARM
    assert rig.servers() == []


# -- a command's own modules, named like those that a server needs -------------------------

OWN = "import sys, resource, select\nprint(resource.MINE, select.__name__, '_unsnarl_warm' in sys.modules)\n"


@pytest.mark.parametrize("where", ["bin", "elsewhere"])
def test_a_module_of_the_commands_own_is_not_hidden_by_one_of_the_servers(rig: "Rig", where: str) -> None:
    script = rig.script("own", OWN)
    (rig.directory / where).mkdir(exist_ok=True)
    rig.env |= {"PYTHONPATH": str(rig.directory / where)} if where != "bin" else {}
    (rig.directory / where / "resource.py").write_text("MINE = 1\n")
    assert rig.plain(UNSNARL, "warm", "start", "--", script).returncode == 1
    assert rig.warm(script).stdout == b"1 select False\n", rig.log()
    assert b"resource" in rig.verb("why", "own").stdout


def test_all_modules_of_a_server_are_known(rig: "Rig") -> None:
    text = "import sys\nprint(*{n.partition('.')[0] for n in sys.modules} - set(sys.builtin_module_names))\n"
    script = rig.script("shows", text)
    rig.start(script)
    more = {*rig.served(script).stdout.decode().split()} - {*rig.plain(script).stdout.decode().split()}
    assert more - {name for name in more if _imp.is_frozen(name)} - {"_unsnarl_warm"} <= preload.SERVERS


def test_a_module_of_the_commands_own_may_come_later(rig: "Rig") -> None:
    script = rig.script("own", "import struct, sys\nprint('_unsnarl_warm' in sys.modules, 'mine' in dir(struct))\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True False\n"
    (rig.directory / "bin" / "struct.py").write_text("mine = 1\n")
    assert rig.warm(script).stdout == b"False True\n"
    assert rig.plain(UNSNARL, "warm", "start", "--", script).returncode == 1
    assert rig.warm(script).stdout == b"False True\n"


OLD = os.path.expanduser("~/.pyenv/versions/3.10.13/bin/python3")


@pytest.mark.skipif(not os.path.exists(OLD), reason="there is no older interpreter here")
def test_an_interpreter_that_is_too_old_is_told_of(rig: "Rig") -> None:
    path = rig.directory / "bin" / "old"
    path.write_text(f"#!{OLD}\nprint('run')\n")
    path.chmod(0o755)
    assert rig.plain(UNSNARL, "warm", "start", "--", str(path)).returncode == 1
    assert b"needs Python 3.11" in rig.verb("why", "old").stdout
    assert rig.warm(str(path)).stdout == b"run\n"


# -- what a program is given, and what differs in each run ------------------------------------

NAMES = (
    "shown = [(name, value if value in (None, {}) else type(value).__name__) for name, value in globals().items()]\n"
    "import sys\nprint(shown, '_unsnarl_warm' in sys.modules)\n"
)


@pytest.mark.parametrize("kind", ["script", "module"])
def test_a_program_has_the_names_that_its_interpreter_gives_it(rig: "Rig", kind: str) -> None:
    words = [rig.script("names.py", NAMES)]
    if kind == "module":
        rig.env |= {"PYTHONPATH": str(rig.directory / "bin"), "PYTHONDONTWRITEBYTECODE": "1"}
        words = [sys.executable, "-m", "names"]
    rig.start(*words)
    assert rig.served(*words).stdout == rig.plain(*words).stdout.replace(b"False", b"True"), rig.log()


@pytest.mark.parametrize(("key", "is_drawn"), [("", True), ("multiprocessing.current_process().authkey = b'k'", False)])
def test_processes_know_each_other_by_a_key_of_their_own(rig: "Rig", key: str, is_drawn: bool) -> None:
    (rig.directory / "bin" / "keys.py").write_text(f"import multiprocessing\n{key}\n")
    script = rig.script(
        "who", "import keys, multiprocessing\nprint(bytes(multiprocessing.current_process().authkey))\n"
    )
    rig.start(script)
    keys = {rig.served(script).stdout for _ in range(3)}
    assert len(keys) == (3 if is_drawn else 1)
    assert is_drawn or keys == {b"b'k'\n"}


# -- how an interpreter is named ---------------------------------------------------------------


def test_a_shim_has_the_interpreter_looked_up_where_the_script_has(rig: "Rig") -> None:
    script = rig.directory / "bin" / "tool"
    script.write_text(f"#!/usr/bin/env python3\n{WHO}")
    script.chmod(0o755)
    assert rig.verb("enable", str(script)).returncode == 0
    shim = str(rig.directory / "data" / "unsnarl" / "shims" / "tool")
    for chosen in ("one", "other"):
        python = wrapper(rig.directory / chosen / "python3", chosen)
        env = rig.env | {"PATH": f"{os.path.dirname(python)}:{rig.env['PATH']}"}
        assert rig.plain(shim, env=env).stdout == f"{chosen} False\n".encode()
    env = rig.env | {"PATH": f"{os.path.dirname(sys.executable)}:{rig.env['PATH']}"}
    rig.start(shim, env=env)
    assert rig.served(shim, env=env).stdout == b"None True\n"
    gone = rig.plain(shim, env=rig.env | {"PATH": "/nonexistent"})
    assert (gone.returncode, b"python3" in gone.stderr) == (127, True)


def test_a_plain_command_is_called_as_it_was(rig: "Rig") -> None:
    script = rig.script("called", "import sys\nprint(sys.orig_argv[0], sys.executable)\n")
    rig.env |= {"PATH": f"{os.path.dirname(sys.executable)}:{rig.env['PATH']}", "UNSNARL": "off"}
    for words in (["python", script], [sys.executable, script], [script]):
        assert rig.warm(*words).stdout == rig.plain(*words).stdout


def test_a_file_without_a_first_line_is_the_shells(rig: "Rig") -> None:
    path = rig.directory / "bin" / "script"
    path.write_text('echo "$1"\n')
    path.chmod(0o755)
    assert rig.warm(str(path), "a b").stdout == b"a b\n"
    env = {name: value for name, value in rig.env.items() if name != "PATH"}
    assert rig.warm("echo", "found", env=env).stdout == b"found\n"


def test_an_interpreter_that_is_not_there_is_named_with_who_names_it(rig: "Rig") -> None:
    script = rig.script("tool", "print(1)\n")
    (rig.directory / "bin" / "tool").write_text("#!/no/such/python3\nprint(1)\n")
    said = f"error: no such interpreter: /no/such/python3, which the first line of {script} names\nhint: "
    for words in (["run"], ["start"]):
        outcome = rig.verb(*words, "--", script)
        assert (outcome.returncode, outcome.stdout) == (127, b"")
        assert outcome.stderr.startswith(said.encode())
        assert b"removed" not in outcome.stderr
    cure = b": install the command again, or mend its first line\n"
    assert b"there is no interpreter /no/such/python3" + cure in rig.verb("why", script).stdout
    assert b"its interpreter is not there" + cure in rig.verb("run", "--require", "--", script).stderr


@pytest.mark.parametrize("words", [["x.py"], ["-m", "json.tool"]])
def test_a_caller_who_names_an_interpreter_that_is_not_there_is_told_to_check_the_path(
    rig: "Rig", words: list[str]
) -> None:
    words = ["/no/such/python3", *words]
    direct = rig.verb("run", "--", *words)
    assert direct.stderr.startswith(b"error: no such interpreter: /no/such/python3\nhint: check the path")
    assert b"there is no interpreter /no/such/python3: check the path\n" in rig.verb("why", "--", *words).stdout
    required = rig.verb("run", "--require", "--", *words)
    assert required.stderr.endswith(b"hint: its interpreter is not there: check the path\n")


def test_an_interpreter_that_is_there_but_cannot_start_is_not_said_to_be_missing(rig: "Rig") -> None:
    python = rig.directory / "bin" / "python3"
    python.write_text("#!/no/such/loader\n")
    python.chmod(0o755)
    outcome = rig.verb("run", "--", str(python), rig.script("tool", "print(1)\n"))
    said = f"error: cannot be executed: {python}\nhint: the loader or the interpreter that this file names is not there"
    assert (outcome.returncode, outcome.stdout) == (127, b"")
    assert outcome.stderr.startswith(said.encode())


@pytest.mark.parametrize("name", ["LISTEN_PID", "WATCHDOG_PID", "NOTIFY_SOCKET"])
def test_a_command_that_is_known_by_its_number_runs_plainly(rig: "Rig", name: str) -> None:
    script = rig.script("who", WHO)
    rig.start(script)
    assert rig.warm(script, env=rig.env | {name: "1"}).stdout == b"None False\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes the superuser to ask for a priority")
@pytest.mark.parametrize("words", ["chrt -r {}", "setpriv --securebits={}no_setuid_fixup", "core {}"])
def test_what_the_kernel_keeps_of_a_process_is_its_callers(rig: "Rig", words: str) -> None:
    script = rig.script("kept", KEPT)
    core = "sh -c 'echo 0x{}3 > /proc/self/coredump_filter; exec \"$@\"' sh"
    shown = []
    for value in ("+", "-") if "bits" in words else ("1", "2"):
        place = shlex.split(words.replace("core {}", core).format(value))
        if rig.plain(*place, "true").returncode != 0:
            pytest.skip(f"not allowed here: {place[0]}")
        plain = rig.plain(*place, script)
        assert rig.plain(*place, UNSNARL, "warm", "start", "--", script).returncode == 0
        warm = rig.plain(*place, UNSNARL, "warm", "run", "--require", "--", script)
        assert warm.stdout == plain.stdout != b""
        shown.append(warm.stdout)
    assert shown[0] != shown[1]


KEPT = """
import ctypes, os
print(os.sched_getparam(0).sched_priority, ctypes.CDLL(None).prctl(27))
print(open("/proc/self/coredump_filter").read())
"""


# -- what a command is called in other verbs ---------------------------------------------------


def test_a_module_is_asked_for_as_it_is_run(rig: "Rig") -> None:
    words = [sys.executable, "-m", "json.tool"]
    rig.start(*words)
    asked = [words, ["--", *words], [" ".join(["python", *words[1:]])], ["json.tool"]]
    assert {rig.verb("why", *way).returncode for way in asked} == {0}
    assert b"json.tool" in rig.verb("logs", *words).stdout or rig.log() == ""
    unknown = rig.verb("why", "--", "python", "-m", "nothing")
    assert b"unsnarl warm learn -- python -m nothing" in unknown.stderr
    assert rig.verb("stop", *words).returncode == 0
    assert rig.servers() == []


def test_a_module_that_is_not_there_has_no_server(rig: "Rig") -> None:
    words = [sys.executable, "-m", "nosuchmodule.tool"]
    started = rig.plain(UNSNARL, "warm", "start", "--", *words)
    assert (started.returncode, rig.servers()) == (1, [])
    assert b"there is no module nosuchmodule.tool" in rig.verb("why", *words).stdout
    assert rig.warm(*words).stderr == rig.plain(*words).stderr


@pytest.mark.parametrize("module", ["readline", "curses"])
def test_what_a_module_reads_in_c_tells_servers_apart(rig: "Rig", module: str) -> None:
    script = rig.script("reads", f"import {module}\n")
    rig.start(script)
    assert b" TERM " in rig.verb("why", "reads").stdout
