"""``unsnarl run --stats`` prints the scheduler's statistics at the very end, on stderr."""

import os
import pty
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from unsnarl import gil

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

pytestmark = pytest.mark.needs_gil

TITLE = re.compile(r"^unsnarl: GIL statistics of process (\d+)$", re.MULTILINE)

FORKS = """\
import os, sys
pid = os.fork()
if pid == 0:
    sys.exit()
os.waitpid(pid, 0)
"""

PRESSING = """\
import os, signal, sys
pressed = []

def press(frame, event, argument):
    # Once, in the middle of the report.
    if event == "call" and frame.f_code.co_name == "formatted" and not pressed:
        pressed.append(True)
        os.write(1, b"pressed\\n")
        os.kill(os.getpid(), signal.SIGINT)

sys.setprofile(press)
"""


def processes(shown: "Outcome") -> list[int]:
    """Return the processes whose statistics were printed, in that order."""
    return [int(number) for number in TITLE.findall(shown.complaint)]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("print('done')", 0),
        ("import sys; print('done'); sys.exit(3)", 3),
        ("print('done'); 1/0", 1),
        ("import threading; print('done'); threading.Thread(target=lambda: 0).start()", 0),
        ("import atexit; print('done'); atexit.register(lambda: 1/0)", 0),
    ],
)
def test_statistics_follow_all_the_program_has_to_say(programs: "Programs", text: str, status: int) -> None:
    shown = programs.run("--stats", "-c", text)
    assert shown.status == status
    assert shown.stdout == b"done\n"
    before, _, table = shown.complaint.partition("unsnarl: ")
    assert bool(before) == ("1/0" in text)
    assert "Traceback" not in table
    assert processes(shown)


def test_statistics_name_every_class_of_threads(programs: "Programs") -> None:
    table = programs.run("--stats", "-c", "").complaint
    for row in gil.stats().classes:
        assert re.search(rf"^name .*\b{re.escape(str(row.name))}\b", table, re.MULTILINE), table


def test_children_print_theirs_only_if_asked(programs: "Programs") -> None:
    programs.write("app.py", "import os, subprocess, sys\n" + FORKS + "subprocess.run([sys.executable, '-c', ''])\n")
    env = {"PYTHONWARNINGS": "ignore"}
    assert len(processes(programs.run("--stats", "app.py", env=env))) == 1
    assert len(set(processes(programs.run("--stats=all", "app.py", env=env)))) == 3


def test_a_program_that_becomes_itself_again_prints_once(programs: "Programs") -> None:
    text = "import os, sys\nif len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, __file__, 'again'])\n"
    programs.write("app.py", text + "print(os.getpid())")
    shown = programs.run("--stats", "app.py")
    assert processes(shown) == [int(shown.stdout)]


@pytest.mark.parametrize(
    "text",
    [
        "import sys; sys.stderr.close()",
        "import os; os.close(2)",
        "import sys; sys.stderr = sys.__stderr__ = None",
        "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
        "import os; os._exit(0)",
    ],
)
def test_where_nothing_can_be_printed_nothing_else_changes(programs: "Programs", text: str) -> None:
    assert programs.run("--stats", "-c", text) == programs.python("-c", text)


def test_stderr_of_the_program_is_where_it_was(programs: "Programs") -> None:
    """A program that redirects ``sys.stderr`` for itself does not redirect us."""
    shown = programs.run("--stats", "-c", "import io, sys; sys.stderr = io.StringIO()")
    assert len(processes(shown)) == 1


def test_stderr_to_a_reader_that_left(programs: "Programs") -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        command = [sys.executable, "-m", "unsnarl", "run", "--stats", "-c", "print('done')"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=write_end, timeout=60, check=False)
    finally:
        os.close(write_end)
    assert (done.returncode, done.stdout) == (0, b"done\n")


def test_a_terminal_gets_plain_text() -> None:
    shown = on_a_terminal(["run", "--stats", "-c", ""], {"TERM": "xterm-256color"})
    assert "GIL statistics of process" in shown
    assert "\x1b[" not in shown


def test_no_file_of_the_program_is_run_for_the_table(programs: "Programs") -> None:
    """An import at the end searches the script's directory first."""
    loaded = {"os", "sys", "io", "abc", "site", "stat", "time", "codecs", "posixpath", "genericpath", "atexit"}
    for name in sys.stdlib_module_names:
        if not name.startswith("_") and name not in loaded | set(sys.builtin_module_names):
            programs.write(f"{name}.py", f"print({name!r}, 'was run')\n")
    shown = programs.run("--stats", programs.write("app.py", "print('app')\n"))
    assert len(processes(shown)) == 1
    assert shown.stdout == b"app\n"


def test_a_program_with_a_threading_of_its_own(programs: "Programs") -> None:
    programs.write("threading.py", "")
    programs.write("app.py", "import threading; print('app')\n")
    shown = programs.run("--stats", "app.py")
    assert (shown.status, shown.stdout) == (0, b"app\n")
    assert len(processes(shown)) == 1, shown.complaint


@pytest.mark.parametrize("option", ["--stats", "--stats=all"])
@pytest.mark.parametrize("text", ["time.sleep(60)", "raise KeyboardInterrupt"])
def test_ctrl_c_still_kills(programs: "Programs", option: str, text: str) -> None:
    text = f"import os, signal, threading, time\nprint('up', flush=True)\n{text}"
    command = [sys.executable, "-m", "unsnarl", "run", option, str(programs.write("app.py", text))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"up\n"
        process.send_signal(signal.SIGINT)
        complaint = process.stderr.read()
    assert process.returncode == -signal.SIGINT, complaint
    assert TITLE.search(complaint.decode())


def test_ctrl_c_while_the_statistics_are_made_loses_none_of_them(programs: "Programs") -> None:
    programs.write("app.py", PRESSING)
    shown = programs.run("--stats", "app.py")
    assert (shown.status, shown.stdout) == (0, b"pressed\n")
    assert "Traceback" not in shown.complaint
    assert len(processes(shown)) == 1, shown.complaint


def on_a_terminal(words: list[str], env: dict[str, str]) -> str:
    """Run ``unsnarl WORDS...`` with a terminal for stderr, and return its output."""
    ours, theirs = pty.openpty()
    environment = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "unsnarl", *words], stdout=subprocess.DEVNULL, stderr=theirs, env={**environment, **env}
    ) as process:
        os.close(theirs)
        try:
            shown = _read_all(ours)
        finally:
            process.send_signal(signal.SIGKILL) if process.poll() is None and not _ends(process) else None
            os.close(ours)
    assert process.returncode == 0
    return shown


def _ends(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        return False
    return True


def _read_all(terminal: int) -> str:
    """Read until the last writer has closed the terminal, which Linux reports as EIO."""
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 65536)
        except OSError:
            return shown.decode()
        if not piece:
            return shown.decode()
        shown += piece
