"""What the verbs that are about the GIL do on a free-threaded build: they say in one line why they cannot work.

`warm`, `pack` and the primitives do not depend on the GIL; their own tests run on such a build as on any other.
"""

from __future__ import annotations

import json
import subprocess
import sysconfig
from typing import TYPE_CHECKING

import pytest

from tests.conftest import UNSNARL, clean_environment

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this interpreter has a GIL")

PROGRAM = """\
import queue, sys, threading
place = queue.Queue()
thread = threading.Thread(target=place.put, args=(len(sys.argv),))
thread.start()
print(place.get(), any(base.__module__ == "unsnarl" for base in type(place).__mro__))
thread.join()
"""


def raw(programs: Programs, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command without removing the notice from its stderr."""
    return subprocess.run(
        [UNSNARL, *words],
        cwd=programs.directory,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(("options", "is_native"), [((), False), (("--patch",), True)])
def test_run_says_once_that_there_is_nothing_to_schedule(
    programs: Programs, options: tuple[str, ...], is_native: bool
) -> None:
    programs.write("app.py", PROGRAM)
    ended = raw(programs, "run", *options, "app.py", "x")
    assert (ended.returncode, ended.stdout) == (0, f"2 {is_native}\n")
    (notice,) = ended.stderr.splitlines()
    assert "runs without the GIL scheduler: this is a free-threaded build" in notice


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trace", "app.py"], "the program cannot be traced: this is a free-threaded build"),
        (["trace", "--attach", "1"], "process 1 cannot be recorded: this is a free-threaded build"),
        (["gil", "probe"], "this is a free-threaded build"),
        (["enable"], "this is a free-threaded build"),
        (["demo", "--quick"], "this is a free-threaded build"),
    ],
)
def test_verbs_of_the_gil_refuse_in_one_line(programs: Programs, words: list[str], said: str) -> None:
    programs.write("app.py", "open('has-run', 'w').close()")
    ended = raw(programs, *words)
    assert (ended.returncode, ended.stdout) == (1, "")
    error, hint = ended.stderr.splitlines()
    assert error.startswith(f"error: {said}")
    assert hint.startswith("hint: ")
    assert not (programs.directory / "has-run").exists()


def test_doctor_compares_what_there_is_and_says_what_it_left_out(programs: Programs) -> None:
    programs.write("app.py", PROGRAM)
    words = ["doctor", "--runs", "2", "--seconds", "0"]
    document = json.loads(raw(programs, *words, "--json", "app.py").stdout)
    names = [way["name"] for way in document["outcomes"]]
    assert names[:2] == ["stock", "native primitives"]
    assert "scheduler" not in names
    assert (document["findings"], document["effects"]) == ([], [])
    assert document["left_out"].startswith("this is a free-threaded build")
    ended = raw(programs, *words, "app.py")
    assert ended.returncode == 0, ended.stderr
    assert " ".join(ended.stdout.split()).count("the scheduler was not tried and nothing was traced") == 1
