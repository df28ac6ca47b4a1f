"""What only the caller's process has: imports that read it are found, and what is ignored is ignored with care."""

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.test_warm_commands import on_a_terminal

if TYPE_CHECKING:
    from tests.integration.conftest import Rig


def script_of(rig: "Rig", module: str) -> str:
    """Write a command that prints its module's ``VALUE``, and whether it is warm."""
    (rig.directory / "bin" / "mod.py").write_text(module)
    return rig.script(
        "who", "import sys, mod\nprint(mod.VALUE, 'warm' if '_unsnarl_warm' in sys.modules else 'plain')\n"
    )


def test_an_ignored_variable_may_be_unset_empty_or_set(rig: "Rig") -> None:
    script = script_of(rig, "import os\nVALUE = os.environ.get('NUMBER', 'none')\n")
    environments = [rig.env | {"UNSNARL_WARM_IGNORE": "NUMBER"} | extra for extra in ({}, {"NUMBER": ""})]
    environments += [environments[0] | {"NUMBER": str(number)} for number in range(3)]
    for env in environments[:3]:
        rig.start(script, env=env)
    assert len(rig.servers()) == 3
    for env, shown in zip(environments, (b"none", b"", b"0", b"1", b"2"), strict=True):
        assert rig.served(script, env=env).stdout == shown + b" warm\n"


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("dict(posix.environ)", b"reads the whole environment"),
        ("len(posix.environ)", b"reads the whole environment"),
        ("stat.S_ISFIFO(os.fstat(0).st_mode)", b"asks for the kind of a standard stream"),
        ("os.stat(1).st_mode", b"asks for the kind of a standard stream"),
        ("open('/dev/stdin').fileno()", b"reads the standard input"),
    ],
)
def test_what_only_a_process_has_is_asked_by_each_run(rig: "Rig", value: str, reason: bytes) -> None:
    script = script_of(rig, f"import os, posix, signal, stat\nVALUE = str({value})\n")
    rig.start(script, stdin=subprocess.PIPE)
    assert reason in rig.verb("why", script).stdout
    for environ in (rig.env, rig.env | {"MORE": "1"}):
        rig.start(script, env=environ)
        for given in ({"input": b""}, {"stdin": subprocess.DEVNULL}):
            plain, warm = (run(script, env=environ, **given) for run in (rig.plain, rig.served))
            assert warm.stdout == plain.stdout.replace(b" plain", b" warm")


def test_the_first_environment_of_a_run_is_its_callers(rig: "Rig") -> None:
    script = rig.script("who", "import posix, sys\nprint(sorted(posix.environ), '_unsnarl_warm' in sys.modules)\n")
    rig.start(script, env=rig.env | {"OF_THE_FIRST": "1"})
    environ = rig.env | {"OF_THE_NEXT": "1"}
    plain, warm = (run(script, env=environ) for run in (rig.plain, rig.served))
    assert b"OF_THE_NEXT" in plain.stdout
    assert warm.stdout == plain.stdout.replace(b"] False", b"] True")


@pytest.mark.parametrize("ask", ["signal.getsignal(n)", "signal.getsignal(signalnum=n)", "_signal.getsignal(n)"])
def test_a_call_that_ignores_signals_runs_plainly_if_imports_have_asked_for_these(rig: "Rig", ask: str) -> None:
    """A job of a script ignores SIGINT and SIGQUIT, one of nohup SIGHUP."""
    text = f"import signal, _signal\nVALUE = [{ask} == 1 for n in (1, 2, 3, 13, 15, 25)]\n"
    script = script_of(rig, text)

    def ignore() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    rig.start(script, preexec_fn=ignore)  # what the first caller ignores, no server ignores
    plain, warm = rig.plain(script), rig.served(script)
    assert warm.stdout == plain.stdout.replace(b" plain", b" warm")
    assert b"True, False, True]" in plain.stdout
    plain, warm = (run(script, preexec_fn=ignore) for run in (rig.plain, rig.warm))
    assert warm.stdout == plain.stdout
    assert b"[True, " in plain.stdout


@pytest.mark.parametrize(
    "value",
    ["os.get_terminal_size()", "fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8))", "shutil.get_terminal_size()"],
)
def test_imports_may_keep_the_size_of_a_terminal_or_that_there_is_none(rig: "Rig", value: str) -> None:
    text = f"import fcntl, os, shutil, termios\ntry:\n    VALUE = {value}\nexcept OSError:\n    VALUE = None\n"
    script = script_of(rig, text)
    rig.start(script)
    assert rig.served(script).stdout.endswith(b" warm\n")
    plain = on_a_terminal(rig, script)
    assert on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)[0] == 0
    status, shown = on_a_terminal(rig, UNSNARL, "warm", "run", "--require", "--", script)
    assert (status, shown) == (0, plain[1].replace(b" plain", b" warm"))


def test_more_than_the_size_of_a_terminal_is_asked_by_each_run(rig: "Rig") -> None:
    text = "import fcntl, termios\ntry:\n    VALUE = any(fcntl.ioctl(1, termios.TIOCGPGRP, bytes(4)))\n"
    script = script_of(rig, text + "except OSError:\n    VALUE = None\n")
    rig.start(script)
    assert rig.served(script).stdout.endswith(b" warm\n")
    assert on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)[0] == 0
    status, shown = on_a_terminal(rig, UNSNARL, "warm", "run", "--require", "--", script)
    assert (status, shown) == (0, on_a_terminal(rig, script)[1].replace(b" plain", b" warm"))


def test_a_variable_of_the_first_environment_is_part_of_the_key(rig: "Rig") -> None:
    script = script_of(rig, "import posix\nVALUE = posix.environ.get(b'LEVEL')\n")
    for level in ("1", "2"):
        env = rig.env | {"LEVEL": level}
        rig.start(script, env=env)
        assert rig.served(script, env=env).stdout == f"b'{level}' warm\n".encode()
