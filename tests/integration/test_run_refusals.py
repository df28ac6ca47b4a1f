"""``unsnarl run`` refuses an invalid target in one line with a hint, and the status a shell expects.

No refusal may have a traceback of unsnarl. A refusal by python itself, after the exec, keeps
python's message.
"""

import os
import re
import signal
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from unsnarl.run_settings import RunSettings

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

REFUSAL = re.compile(r"error: [^\n]+\nhint: [^\n]+\n")


def assert_refused(shown: "Outcome", status: int, *words: str) -> None:
    """Check that this is a refusal, and that it names its subject."""
    assert REFUSAL.fullmatch(shown.complaint), shown.complaint
    assert shown.status == status
    assert shown.stdout == b""
    for word in words:
        assert word in shown.complaint


@pytest.mark.parametrize("words", [[], [""], ["runn"], ["app.py"], ["--stats"], ["-x"], ["\n"]])
def test_no_such_verb(programs: "Programs", words: list[str]) -> None:
    assert_refused(programs.unsnarl(*words), 2, *map(repr, words[:1]))


def test_the_gil_verb_does_one_thing(programs: "Programs") -> None:
    assert_refused(programs.unsnarl("gil"), 2, "unsnarl gil probe")
    assert_refused(programs.unsnarl("gil", "prove"), 2, "'prove'", "unsnarl gil probe")


def test_a_slip_of_the_finger_is_guessed(programs: "Programs") -> None:
    assert_refused(programs.unsnarl("rnu"), 2, "did you mean 'run'?")
    assert_refused(programs.unsnarl("app.py"), 2, "unsnarl run app.py")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ([], "no program"),
        (["--stats"], "no program"),
        (["-u"], "no program"),
        (["--"], "no program"),
        ([""], "empty"),
        (["--", ""], "empty"),
        (["-m"], "-m"),
        (["-m", ""], "empty"),
        (["-c"], "-c"),
        (["-X"], "-X"),
        (["--slice"], "--slice"),
        (["--slice", "-1", "app.py"], "'-1'"),
        (["--slice=0", "app.py"], "'0'"),
        (["--slice=nan", "app.py"], "'nan'"),
        (["--slice=inf", "app.py"], "'inf'"),
        (["--slice=1e300", "app.py"], "'1e300'"),
        (["--slice=", "app.py"], "''"),
        (["--slice", "app.py", "x"], "'app.py'"),
        (["--stats=some", "app.py"], "'some'"),
        (["--no-children=1", "app.py"], "--no-children"),
        (["--nonsense", "app.py"], "--nonsense"),
        (["-z", "app.py"], "-z"),
        (["-uz", "app.py"], "-z"),
        (["-S", "app.py"], "-S"),
        (["-V"], "-V"),
        (["-uh"], "-h"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_command_line_that_makes_no_sense(programs: "Programs", words: list[str], names: str) -> None:
    programs.write("app.py", "print('this must not run')")
    assert_refused(programs.run(*words), 2, names)


@pytest.mark.parametrize(
    "name", ["missing.py", "./missing.py", "/missing/app.py", "missing", "app.py/x", "x" * 300 + ".py"]
)
def test_a_script_that_is_not_there(programs: "Programs", name: str) -> None:
    programs.write("app.py", "")
    assert_refused(programs.run(name), 2, name)
    assert programs.python(name).status == 2


def test_a_script_that_cannot_be_opened(programs: "Programs") -> None:
    (programs.directory / "loop.py").symlink_to("loop.py")
    (programs.directory / "dangling.py").symlink_to("nowhere.py")
    for name in ("loop.py", "dangling.py"):
        assert_refused(programs.run(name), 2, name)
        assert programs.python(name).status == 2


def test_a_script_that_may_not_be_read(programs: "Programs") -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    programs.write("app.py", "").chmod(0)
    assert_refused(programs.run("app.py"), 2, "app.py", "Permission denied")


def test_a_script_name_with_control_characters_stays_one_line(programs: "Programs") -> None:
    assert_refused(programs.run("two\nlines\x1b[31m.py"), 2)


def test_a_directory_or_archive_without_a_program(programs: "Programs") -> None:
    (programs.directory / "empty").mkdir()
    with zipfile.ZipFile(programs.directory / "archive.zip", "w") as archive:
        archive.writestr("other.py", "")
    for name in ("empty", "archive.zip", "."):
        assert_refused(programs.run(name), 1, name, "__main__")
        assert programs.python(name).status == 1


def test_a_module_that_is_not_there(programs: "Programs") -> None:
    programs.write("app.py", "")
    assert_refused(programs.run("-m", "no_such_module_anywhere"), 1, "no_such_module_anywhere")
    assert_refused(programs.run("-m", "no_such_module_anywhere.part"), 1, "no_such_module_anywhere")
    assert programs.python("-m", "no_such_module_anywhere").status == 1


def test_a_file_given_as_a_module_is_pointed_out(programs: "Programs") -> None:
    programs.write("tool", "")
    assert_refused(programs.run("-m", "tool"), 1, "unsnarl run tool")


@pytest.mark.parametrize(
    "words",
    [
        ["-m", "package"],
        ["-m", "package.missing"],
        ["-m", ".relative"],
        ["-I", "-m", "package"],
        ["-m", "raises"],
        ["-m", "wrong"],
        ["wrong.py"],
        ["-c", "1 +"],
        ["-X", "nonsense", "-c", ""],
        ["-W", "nonsense", "-c", ""],
        ["--check-hash-based-pycs", "nonsense", "-c", ""],
    ],
    ids=" ".join,
)
def test_what_python_refuses_stays_as_python_says_it(programs: "Programs", words: list[str]) -> None:
    programs.write("package/__init__.py", "")
    programs.write("raises.py", "raise ImportError('by itself')")
    programs.write("wrong.py", "def f(:\n")
    assert programs.run(*words) == programs.python(*words)


@pytest.mark.parametrize(
    "words", [["--help"], ["-h"], ["run", "--help"], ["run", "-u", "-h"], ["gil", "--help"], ["--version"]]
)
def test_help_is_a_result_and_no_complaint(programs: "Programs", words: list[str]) -> None:
    shown = programs.unsnarl(*words)
    assert (shown.status, shown.stderr) == (0, b"")
    assert shown.stdout.startswith((b"usage: unsnarl", b"unsnarl "))
    assert max(map(len, shown.stdout.decode().splitlines())) <= 80


def test_help_into_a_pipe_that_nobody_reads(programs: "Programs") -> None:
    """The command is ended by SIGPIPE, as any filter is, without a message."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "unsnarl", "--help"],
            stdout=write_end,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


def test_help_onto_a_full_disk(programs: "Programs") -> None:
    shown = programs.execute(["/bin/sh", "-c", '"$0" -m unsnarl --help >/dev/full', sys.executable])
    assert_refused(shown, 1, "stdout")


def test_help_with_closed_streams(programs: "Programs") -> None:
    line = '"$0" -m unsnarl --help >&- 2>&-; echo $?; "$0" -m unsnarl nonsense 2>&-; echo $?'
    assert programs.execute(["/bin/sh", "-c", line, sys.executable]).stdout == b"0\n2\n"


def test_an_interrupt_before_the_program_starts(programs: "Programs") -> None:
    """Ctrl-C while unsnarl still resolves the program: death by the signal, no traceback."""
    text = """
import unsnarl.cli, unsnarl.cli.run
def interrupted(arguments):
    raise KeyboardInterrupt
unsnarl.cli.run.main = interrupted
unsnarl.cli.main(["run", "app.py"])
"""
    assert programs.python("-c", text) == (-signal.SIGINT, b"", b"")


def test_an_interpreter_that_cannot_be_executed(programs: "Programs") -> None:
    text = "import sys, unsnarl.cli; sys.executable = sys.argv[1]; sys.exit(unsnarl.cli.main(['run', '-c', '']))"
    assert_refused(programs.python("-c", text, "/nowhere/python"), 126, "/nowhere/python")
    assert_refused(programs.python("-c", text, ""), 126)


def test_an_environment_without_the_hook_file(programs: "Programs") -> None:
    """The program runs, and one line names what it runs without."""
    text = """
import sys, unsnarl.cli.program.launch
unsnarl.cli.program.launch.HOOK_FILE = "none"
sys.exit(unsnarl.cli.main(["run", "-c", "print(1)"]))
"""
    shown = programs.python("-c", text)
    assert (shown.status, shown.stdout) == (0, b"1\n")
    assert re.fullmatch(r"unsnarl: [^\n]* none [^\n]*\n", shown.complaint)


def test_a_scheduler_that_cannot_be_installed(programs: "Programs") -> None:
    """The program runs without the scheduler; its first process prints the reason, its children nothing."""
    settings = RunSettings(slice_ms=-1.0, main_pid=0).encode().replace("main_pid=0", "main_pid=$$")
    child = "import subprocess, sys; print(1, flush=True); subprocess.run([sys.executable, '-c', 'print(2)'])"
    line = f'UNSNARL_RUN="{settings}" exec "$0" -c "{child}"'
    shown = programs.execute(["/bin/sh", "-c", line, sys.executable])
    assert (shown.status, shown.stdout) == (0, b"1\n2\n")
    assert re.fullmatch(r"unsnarl: the program runs without the GIL scheduler: [^\n]+\n", shown.complaint)


def test_settings_that_make_no_sense(programs: "Programs") -> None:
    shown = programs.python("-c", "print(1)", env={"UNSNARL_RUN": "1"})
    assert (shown.status, shown.stdout) == (0, b"1\n")
    assert re.fullmatch(r"unsnarl: [^\n]*UNSNARL_RUN[^\n]*\n", shown.complaint)


def test_the_directory_is_gone(programs: "Programs") -> None:
    line = 'mkdir gone; cd gone; rmdir ../gone; "$0" -m unsnarl run app.py'
    shown = programs.execute(["/bin/sh", "-c", line, sys.executable])
    assert_refused(shown, 2, "app.py")


def test_the_interpreter_is_not_the_program(programs: "Programs") -> None:
    programs.write("app.py", "")
    for words in (["--", "python", "app.py"], [sys.executable, "app.py"], ["python", "app.py"]):
        assert_refused(programs.run(*words), 126, "unsnarl run app.py")


def test_an_option_s_in_the_first_line_is_told_from_a_value(programs: "Programs") -> None:
    script = programs.write("tool", f"#!{sys.executable} -Wignore::SyntaxWarning\nprint('runs')\n")
    script.chmod(0o755)
    path = {"PATH": f"{programs.directory}:{os.environ['PATH']}"}
    assert programs.run("--", "tool", env=path).stdout == b"runs\n"
    script.write_text(f"#!{sys.executable} -uS\n")
    assert_refused(programs.run("--", "tool", env=path), 126, "has -S")


def test_an_empty_variable_is_none(programs: "Programs") -> None:
    shown = programs.python("-c", "print('runs')", env={"UNSNARL_RUN": ""})
    assert (shown.stdout, shown.complaint) == (b"runs\n", "")
