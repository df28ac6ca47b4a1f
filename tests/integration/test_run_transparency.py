"""Under ``unsnarl run`` a program behaves as it does under ``python``.

Each probe is run both ways and compared byte for byte: stdout, stderr, status. The comparison also
shows that the scheduler was active, since ``unsnarl run`` prints a line on stderr otherwise; the
first test checks it explicitly.
"""

import os
import re
import signal
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Outcome, Programs

WHO_AM_I = """\
import sys
print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.warnoptions, sys._xoptions)
print(__name__, globals().get("__file__"), __package__, __spec__ and __spec__.name, __doc__)
print(sys.executable, sys.prefix, sys.exec_prefix, sys.dont_write_bytecode, sys.pycache_prefix)
print(sys.stdin.read())
"""

_NUMBERS = re.compile(rb"(?<=0x)[0-9a-f]+|(?<=pid=)\d+|(?<=started )\d+")

WAYS = ("", "-m unsnarl run")
"""The words that the shell inserts between ``python`` and the program."""

ODD_ARGUMENTS = ["a b", "", "--stats", "-c", "ü", "--", "--slice=3"]


def both_ways(
    programs: "Programs", *words: str | Path, env: dict[str, str] | None = None, stdin: bytes = b""
) -> "Outcome":
    """Run ``python WORDS...`` and ``unsnarl run WORDS...``, and return both results."""
    stock = programs.python(*words, env=env, stdin=stdin)
    scheduled = programs.run(*words, env=env, stdin=stdin)
    assert repeatable(scheduled) == repeatable(stock)
    return stock


def repeatable(shown: "Outcome") -> "Outcome":
    """Blank out addresses, process and thread numbers, which differ between two runs of python."""
    return shown._replace(stdout=_NUMBERS.sub(b"N", shown.stdout), stderr=_NUMBERS.sub(b"N", shown.stderr))


@pytest.mark.needs_gil
def test_the_scheduler_is_installed_before_the_first_line(programs: "Programs") -> None:
    shown = programs.run("-c", "import unsnarl; print(unsnarl.gil.installed())")
    assert shown == (0, b"True\n", b"")


def test_a_script_knows_itself_as_under_python(programs: "Programs") -> None:
    script = programs.write("app.py", WHO_AM_I)
    both_ways(programs, "app.py", *ODD_ARGUMENTS, stdin=b"some input")
    both_ways(programs, script)
    both_ways(programs, Path("..", programs.directory.name, "app.py"))


def test_a_script_with_a_peculiar_name(programs: "Programs") -> None:
    programs.write("-u", WHO_AM_I)
    programs.write("no suffix: ü", WHO_AM_I)
    both_ways(programs, "no suffix: ü", "x")
    assert programs.run("--", "-u", "x") == programs.python("--", "-u", "x")


def test_a_module_knows_itself_as_under_python(programs: "Programs") -> None:
    programs.write("app.py", WHO_AM_I)
    programs.write("package/__init__.py", "print('the package')")
    programs.write("package/__main__.py", WHO_AM_I)
    programs.write("package/part.py", WHO_AM_I)
    for module in ("app", "package", "package.part"):
        both_ways(programs, "-m", module, *ODD_ARGUMENTS)
    both_ways(programs, "-mapp", "-x")


def test_code_knows_itself_as_under_python(programs: "Programs") -> None:
    both_ways(programs, "-c", WHO_AM_I, *ODD_ARGUMENTS)
    both_ways(programs, "-c", "")
    both_ways(programs, "-cimport sys; print(sys.argv, sys.orig_argv)", "-c")


def test_a_program_on_stdin_knows_itself_as_under_python(programs: "Programs") -> None:
    both_ways(programs, "-", *ODD_ARGUMENTS, stdin=WHO_AM_I.replace("sys.stdin.read()", "0").encode())


def test_a_directory_and_an_archive_know_themselves_as_under_python(programs: "Programs") -> None:
    programs.write("directory/__main__.py", WHO_AM_I)
    with zipfile.ZipFile(programs.directory / "archive.pyz", "w") as archive:
        archive.writestr("__main__.py", WHO_AM_I)
        archive.writestr("beside.py", "")
    both_ways(programs, "directory", *ODD_ARGUMENTS)
    both_ways(programs, "directory/", *ODD_ARGUMENTS)
    both_ways(programs, "archive.pyz", *ODD_ARGUMENTS)


def test_a_script_from_a_pipe_is_read_once(programs: "Programs") -> None:
    seen: list[Outcome] = []
    for way in WAYS:
        read_end, write_end = os.pipe()
        try:
            os.write(write_end, b"import sys; print(sys.argv[1:], 'from a pipe')")
            os.close(write_end)
            command = [sys.executable, *way.split(), f"/dev/fd/{read_end}", "x"]
            seen.append(programs.execute(command, pass_fds=[read_end]))
        finally:
            os.close(read_end)
    assert seen[0] == seen[1]
    assert b"from a pipe" in seen[0].stdout


@pytest.mark.parametrize(
    "options",
    [
        ["-u"], ["-B"], ["-O"], ["-OO"], ["-b"], ["-q"], ["-s"], ["-E"], ["-I"], ["-P"], ["-d"], ["-x"],
        ["-W", "error"], ["-Wdefault::UserWarning"], ["-uBW", "ignore"], ["-bb"],
        ["-X", "dev"], ["-Xutf8"], ["-X", "faulthandler"], ["-X", "frozen_modules=off"], ["-X", "tracemalloc=3"],
        ["--check-hash-based-pycs", "always"],
        ["-X", "dev", "-u", "-W", "always", "-P"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_options_of_python_reach_it(programs: "Programs", options: list[str]) -> None:
    text = "#\nimport warnings, unittest.mock\nwarnings.warn('loud')\nassert False, 'not optimised'\n" + WHO_AM_I
    programs.write("app.py", text)
    both_ways(programs, *options, "app.py", "x")


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONWARNINGS": "error"},
        {"PYTHONOPTIMIZE": "1"},
        {"PYTHONDEVMODE": "1"},
        {"PYTHONUNBUFFERED": "1"},
        {"PYTHONDONTWRITEBYTECODE": "1"},
        {"PYTHONPATH": "elsewhere:there"},
        {"PYTHONSAFEPATH": "1"},
        {"PYTHONHASHSEED": "1"},
        {"PYTHONIOENCODING": "latin-1:replace"},
        {"PYTHONUTF8": "1", "LC_ALL": "C"},
        {"LC_ALL": "C"},
        {"LANG": "C", "LC_ALL": "", "LC_CTYPE": "", "PYTHONCOERCECLOCALE": "1"},
        {"PYTHONNOUSERSITE": "1"},
        {"PYTHONFAULTHANDLER": "1"},
        {"PYTHONTRACEMALLOC": "2"},
        {"PYTHONMALLOC": "debug"},
    ],
    ids=lambda env: " ".join(f"{name}={value}" for name, value in env.items()),
)
def test_variables_of_python_reach_it(programs: "Programs", env: dict[str, str]) -> None:
    programs.write(
        "app.py",
        WHO_AM_I
        + "import warnings, locale, tracemalloc\n"
        + "print(hash('a') if sys.flags.hash_randomization == 0 else '', sys.stdout.encoding, locale.getlocale())\n"
        + "print(tracemalloc.is_tracing(), 'ü')\n"
        + "warnings.warn('loud')\n",
    )
    both_ways(programs, "app.py", env=env)


def test_interactive_mode(programs: "Programs") -> None:
    programs.write("app.py", "answer = 42\n")
    both_ways(programs, "-i", "app.py", stdin=b"print(answer)\n1/0\n")
    both_ways(programs, "-ic", "answer = 1", stdin=b"print(answer)\n")
    both_ways(programs, "-qi", "-", stdin=b"print(1)\n")
    both_ways(programs, "app.py", env={"PYTHONINSPECT": "1"}, stdin=b"print(answer)\n")


STATE = """\
import sys
modules = sorted(name for name in sys.modules if name.split(".")[0] not in ("unsnarl", "_unsnarl_boot"))
import gc, os, signal, threading, time
print(modules)
print({name: value for name, value in os.environ.items() if name != "UNSNARL_RUN"})
print(sorted(os.listdir("/proc/self/fd")), os.getcwd(), os.umask(0o22))
print([(str(number), signal.getsignal(number)) for number in signal.valid_signals()])
def read_status():
    with open("/proc/self/status") as file:
        return dict(line.split(":\\t") for line in file.read().splitlines())
status, deadline = read_status(), time.monotonic() + 30
# A thread that has been joined may not have left the count yet.
while status["Threads"] != "1" and time.monotonic() < deadline:
    time.sleep(0.01)
    status = read_status()
print([status[key] for key in ("Name", "SigPnd", "ShdPnd", "SigBlk", "SigIgn")], "threads", status["Threads"])
# Without 33, SIGSETXID, which glibc handles from a process's first thread on, be it long gone.
print(int(status["SigCgt"], 16) & ~(1 << 32))
print(threading.enumerate(), threading.active_count(), threading.stack_size())
print(sys.getswitchinterval(), sys.getrecursionlimit(), gc.isenabled(), gc.get_threshold(), gc.callbacks)
print(sys.meta_path, sys.path_hooks, sys.gettrace(), sys.getprofile(), threading.excepthook, sys.excepthook)
print(os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0))
print(sys.exc_info(), sys.displayhook, sys.breakpointhook, sys.unraisablehook, sys.get_asyncgen_hooks())
"""


def test_the_process_is_in_the_state_that_python_leaves_it_in(programs: "Programs") -> None:
    programs.write("app.py", STATE)
    assert b"threads 1\n" in both_ways(programs, "app.py").stdout


def test_modules_beside_the_script_hide_the_standard_library(programs: "Programs") -> None:
    """The modules that unsnarl needs before the first line neither come from the program nor hide its own."""
    loaded = {"sys", "builtins", "os", "io", "site", "abc", "codecs", "stat", "posixpath", "genericpath", "time"}
    names = sorted(
        name
        for name in sys.stdlib_module_names
        if not name.startswith("_") and name not in loaded | set(sys.builtin_module_names)
    )
    for name in names:
        programs.write(f"{name}.py", "MINE = True\n")
    programs.write("app.py", "\n".join(f"import {name}; print({name!r}, hasattr({name}, 'MINE'))" for name in names))
    both_ways(programs, "app.py")


ENDINGS = {
    "falls off the end": "",
    "exit(0)": "import sys; sys.exit(0)",
    "exit(3)": "import sys; sys.exit(3)",
    "exit(None)": "import sys; sys.exit()",
    "exit(text)": "import sys; sys.exit('a message')",
    "exit(256)": "import sys; sys.exit(256)",
    "exit(-1)": "import sys; sys.exit(-1)",
    "_exit(7)": "import os; os._exit(7)",
    "exception": "def f():\n    g()\ndef g():\n    raise ValueError('wrong')\nf()",
    "chained": "try:\n    1/0\nexcept Exception as e:\n    raise RuntimeError('second') from e",
    "in context": "try:\n    1/0\nexcept Exception:\n    undefined_name",
    "group": "raise ExceptionGroup('many', [ValueError(1), OSError(2, 'x')])",
    "recursion": "import sys\nsys.setrecursionlimit(60)\ndef f(): f()\nf()",
    "syntax error": "x = 1\ndef f(:\n    pass\n",
    "indentation": "if 1:\nprint(1)",
    "null byte": "x = '\0'",
    "not utf-8": None,
    "suggestion": "import sys\nsys.exut()",
    "KeyboardInterrupt": "raise KeyboardInterrupt",
    "exception in a thread": "import threading\n"
    "t = threading.Thread(target=lambda: 1/0, name='t')\nt.start()\nt.join()",
    "exit in a thread": "import sys, threading\nt = threading.Thread(target=lambda: sys.exit(4))\nt.start()\nt.join()",
    "unraisable": "class C:\n    def __del__(self): raise ValueError\nC()",
    "atexit": "import atexit\natexit.register(print, 1)\natexit.register(print, 2)\natexit.register(lambda: 1/0)",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0])\n1/0",
    "joins a thread at the end": "import threading\ngo = threading.Event()\n"
    "threading.Thread(target=lambda: (go.wait(), print('thread'))).start()\nprint('main')\ngo.set()",
    "leaves a daemon thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
    "leaves busy daemons": "import threading\ndef f():\n    while True: pass\n"
    "for _ in range(4): threading.Thread(target=f, daemon=True).start()",
    "warning": "import warnings\nwarnings.warn('w')\nwarnings.warn('d', DeprecationWarning)",
    "resource warning": "open(__file__)",
    "SIGTERM": "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "SIGKILL": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "SIGINT": "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()",
    "SIGHUP": "import os, signal\nos.kill(os.getpid(), signal.SIGHUP)",
    "SIGPIPE": "import os, signal\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\nos.kill(os.getpid(), signal.SIGPIPE)",
    "abort": "import os, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nos.abort()",
    "segmentation fault": "import ctypes, resource\n"
    "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\nctypes.string_at(0)",
    "handled SIGUSR1": "import os, signal\nsignal.signal(signal.SIGUSR1, lambda *a: print('handled'))\n"
    "os.kill(os.getpid(), signal.SIGUSR1)",
    "execs another": "import os\nos.execv('/bin/sh', ['sh', '-c', 'echo shell; exit 9'])",
    "execs itself": "import os, sys\n"
    "if len(sys.argv) == 1:\n    os.execv(sys.executable, [sys.executable, __file__, 'x'])\n"
    "print(sys.argv)",
    "forks": "import os\npid = os.fork()\nif pid == 0:\n    print('child', flush=True)\n    raise SystemExit(5)\n"
    "print(os.waitpid(pid, 0)[1], flush=True)",
    "forks with threads": "import os, threading\ngo = threading.Event()\nthreading.Thread(target=go.wait).start()\n"
    "pid = os.fork()\nif pid == 0: os._exit(5)\nprint(os.waitpid(pid, 0)[1], flush=True)\ngo.set()",
    "stdout closed": "import sys, os\nos.close(1)\nprint('lost')",
    "surrogates": "print('\\udcff')",
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_program_ends_as_under_python(programs: "Programs", name: str) -> None:
    text = ENDINGS[name]
    if text is None:
        (programs.directory / "app.py").write_bytes(b"x = '\xff'\n")
    else:
        programs.write("app.py", text)
    both_ways(programs, "app.py")


def test_endings_are_told_apart(programs: "Programs") -> None:
    """The comparison above would not notice if both statuses were lost."""
    for name, status in {
        "exit(3)": 3,
        "SIGTERM": -signal.SIGTERM,
        "SIGINT": -signal.SIGINT,
        "abort": -signal.SIGABRT,
    }.items():
        text = ENDINGS[name]
        assert text is not None
        assert both_ways(programs, "-c", text).status == status


def test_stdin_is_the_programs_own(programs: "Programs") -> None:
    programs.write("app.py", "import sys\nfor line in sys.stdin.buffer: print(line)\nprint(input())")
    both_ways(programs, "app.py", stdin=b"one\ntwo\xff\n\0three")


def test_stdout_to_a_reader_that_left(programs: "Programs") -> None:
    programs.write("app.py", "import sys\nfor n in range(100_000): print(n)")
    seen: list[Outcome] = []
    for way in WAYS:
        pipeline = f'{{ "$0" {way} app.py; echo "status $?" >&2; }} | head -n 1'
        seen.append(programs.execute(["/bin/sh", "-c", pipeline, sys.executable]))
    assert seen[0] == seen[1]
    assert b"BrokenPipeError" in seen[0].stderr


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(programs: "Programs", closed: str) -> None:
    programs.write(
        "app.py", "import sys, os\nos._exit(10 * (sys.stdin is None) + (sys.stdout is None) + 5 * (sys.stderr is None))"
    )
    seen = [programs.execute(["/bin/sh", "-c", f'"$0" {way} app.py {closed}; echo $?', sys.executable]) for way in WAYS]
    assert seen[0] == seen[1]
    assert seen[0].stdout != b"0\n"


def test_ignored_signals_stay_ignored(programs: "Programs") -> None:
    programs.write("app.py", "import signal; print([signal.getsignal(s) == signal.SIG_IGN for s in (1, 2)])")
    seen = [
        programs.execute(["/bin/sh", "-c", f'trap "" HUP INT; exec "$0" {way} app.py', sys.executable]) for way in WAYS
    ]
    assert seen[0] == seen[1]
    assert seen[0].stdout == b"[True, True]\n"


def test_the_kill_switch_leaves_the_plain_program(programs: "Programs") -> None:
    text = "import sys, os; print([m for m in sys.modules if 'unsnarl' in m], 'UNSNARL_RUN' in os.environ)"
    assert programs.run("-c", text, env={"UNSNARL": "off"}) == (0, b"[] False\n", b"")
    both_ways(programs, "-c", WHO_AM_I, env={"UNSNARL": "off"})


def test_the_process_stays_the_same(programs: "Programs") -> None:
    """The shell's child is the program itself: no second process stands between them."""
    line = '"$0" -m unsnarl run -c "import os; print(os.getpid())" & echo $!; wait'
    one, other = programs.execute(["/bin/sh", "-c", line, sys.executable]).stdout.split()
    assert one == other


AT_THE_END = """\
import _thread, os, sys
class Last:
    def __del__(self, write=os.write, start=_thread.start_new_thread, fork=os.fork, end=os._exit, kinds=Exception):
        for call in (lambda: start(int, ()), lambda: fork() or end(0)):
            try:
                call()
            except kinds as error:
                write(1, f"{type(error).__name__}: {error}\\n".encode())
of_main, os.of_a_module, sys.of_sys = Last(), Last(), Last()
"""


def test_a_thread_or_fork_while_the_interpreter_ends_is_refused_as_under_python(programs: "Programs") -> None:
    refused = both_ways(programs, "-c", AT_THE_END).stdout
    assert sys.version_info < (3, 12) or b"at interpreter shutdown" in refused
