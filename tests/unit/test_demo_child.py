"""Reading from a child has a timeout, and no process of the child remains."""

import os
import select
import signal
import subprocess
import sys

import pytest

from unsnarl.demo.child import Child, ChildError, SilentChildError

TIMEOUT_S = 60.0


def child(code: str, *arguments: str) -> Child:
    return Child("helper", [sys.executable, "-S", "-c", code, *arguments], os.environ)


def ends(pid: int) -> bool:
    """Wait until a process has ended; a zombie counts as ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        readable, _, _ = select.select([descriptor], [], [], TIMEOUT_S)
    finally:
        os.close(descriptor)
    return bool(readable)


def test_lines_are_heard_one_by_one() -> None:
    with child("print('one\\ntwo', flush=True); print(input())") as helper:
        helper.expect("one", TIMEOUT_S)
        assert helper.receive(TIMEOUT_S) == "two"
        helper.send("three")
        assert helper.receive(TIMEOUT_S) == "three"


def test_an_early_end_is_told_with_the_childs_last_words() -> None:
    with child("import sys; sys.exit('no such luck')") as helper, pytest.raises(ChildError, match="no such luck"):
        helper.receive(TIMEOUT_S)


def test_silence_has_a_limit() -> None:
    with child("input()") as helper, pytest.raises(SilentChildError, match="sent nothing"):
        helper.receive(0.01)


def test_another_line_than_expected_is_an_error() -> None:
    with child("print('no')") as helper, pytest.raises(ChildError, match="'no' instead of 'yes'"):
        helper.expect("yes", TIMEOUT_S)


def test_saying_something_to_a_child_that_has_gone_is_an_error() -> None:
    with child("print('ready', flush=True); input()") as helper:
        helper.expect("ready", TIMEOUT_S)
        helper.send("go")
        with pytest.raises(ChildError, match="ended early"):
            helper.receive(TIMEOUT_S)
        assert ends(helper.pid)
        with pytest.raises(ChildError, match="ended early"):
            helper.send("more")


GRANDPARENT = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-S", "-c", "input()"]).pid, flush=True)
input()
"""


def test_leaving_kills_the_child_and_its_own_children() -> None:
    with child(GRANDPARENT) as helper:
        grandchild = int(helper.receive(TIMEOUT_S))
    assert ends(helper.pid)
    assert ends(grandchild)


def test_an_error_inside_kills_the_child_as_well() -> None:
    with pytest.raises(ZeroDivisionError), child("input()") as helper:
        _ = 1 / 0
    assert ends(helper.pid)


SERVE = """
import os, signal
from unsnarl.demo.measurement import Served
with Served("stdlib", "stock", 1) as served:
    print(served.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_server_dies_with_its_parent_however_that_dies() -> None:
    parent = subprocess.run([sys.executable, "-c", SERVE], stdout=subprocess.PIPE, check=False, timeout=TIMEOUT_S)
    assert parent.returncode == -signal.SIGKILL
    assert ends(int(parent.stdout))
