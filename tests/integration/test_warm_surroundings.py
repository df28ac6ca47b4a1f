"""A caller's circumstances reach the command: its limits, and the directories that its environment names."""

import fcntl
import os
import resource
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.test_warm_commands import on_a_terminal
from tests.integration.waiting import WATCHDOG_S, until
from unsnarl.warm.importing.trampolines import HIGH_FD
from unsnarl.warm.managing import runtime_directory

if TYPE_CHECKING:
    from tests.integration.conftest import Rig


def limited(which: int, soft: int) -> Callable[[], None]:
    """Return a function that sets a soft limit in a new process."""
    return lambda: resource.setrlimit(which, (soft, resource.getrlimit(which)[1]))


# -- the note of a start ---------------------------------------------------------


def is_free(lock: Path) -> bool:
    """Return whether a lock is free."""
    with open(lock, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("bytes_left", [0, 4])
def test_a_start_that_cannot_be_noted_is_none(rig: "Rig", bytes_left: int) -> None:
    script = rig.script("hello", "print('run')\n")
    # For a writer this is like a full disk; with a limit of 0 a signal arrives as well.
    outcome = rig.warm(script, preexec_fn=limited(resource.RLIMIT_FSIZE, bytes_left))
    assert (outcome.returncode, outcome.stdout) == (0, b"run\n"), outcome.stderr
    (lock,) = rig.house.glob("*.lock")
    until(lambda: is_free(lock))
    # The first file that a starting server opens.
    assert not list(rig.house.glob("*.log"))
    rig.start(script)
    assert rig.served(script).stdout == b"run\n"


def test_a_caller_with_few_descriptors_starts_nothing(rig: "Rig") -> None:
    script = rig.script("hello", "print('run')\n")
    outcome = rig.warm(script, preexec_fn=limited(resource.RLIMIT_NOFILE, 8))
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, b"run\n", b"")
    assert not list(rig.house.glob("*.log"))


# -- the runtime directory ---------------------------------------------------------


@pytest.fixture
def fallback() -> Path:
    """The fallback for a directory that is another user's. It is not removed: other tests may use it meanwhile."""
    return Path(f"/tmp/unsnarl-{os.geteuid()}")


def look(rig: "Rig", runtime: Path) -> None:
    """Let a client choose its directory, in an environment that names another one, without starting a server."""
    env = {name: value for name, value in rig.env.items() if name != "UNSNARL_WARM_DIR"}
    script = rig.script("hello", "print('run')\n")
    words = ("setpriv", "--no-new-privs", UNSNARL, "warm", "run", "--", script)
    outcome = rig.plain(*words, env=env | {"XDG_RUNTIME_DIR": str(runtime)})
    assert outcome.stdout == b"run\n", outcome.stderr


def test_the_runtime_directory_of_another_user_is_left_alone(
    rig: "Rig", fallback: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = Path("/")
    if os.geteuid() == 0:
        theirs = rig.directory / "theirs"
        theirs.mkdir()
        os.chown(theirs, 65534, 65534)
    look(rig, theirs)
    assert not (theirs / "unsnarl").exists()
    assert fallback.is_dir()
    monkeypatch.delenv("UNSNARL_WARM_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(theirs))
    assert runtime_directory.path() == str(fallback)


@pytest.mark.usefixtures("fallback")
def test_a_users_own_runtime_directory_is_used(rig: "Rig", monkeypatch: pytest.MonkeyPatch) -> None:
    mine = rig.directory / "mine"
    mine.mkdir()
    look(rig, mine)
    assert stat.S_IMODE((mine / "unsnarl").stat().st_mode) == 0o700
    monkeypatch.delenv("UNSNARL_WARM_DIR", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(mine))
    assert runtime_directory.path() == str(mine / "unsnarl")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(mine / "not-there"))
    assert runtime_directory.path() == f"/tmp/unsnarl-{os.geteuid()}"


def test_a_directory_that_others_may_enter_is_told_how_to_be_private(rig: "Rig") -> None:
    rig.house.mkdir(mode=0o755)
    assert f"hint: chmod 700 {rig.house}\n".encode() in rig.verb("status").stderr
    rig.house.rmdir()
    rig.house.touch()
    assert b"hint: remove it" in rig.verb("status").stderr


def test_a_mask_that_takes_everything_does_not_lock_the_directory(rig: "Rig") -> None:
    script = rig.script("mask", "import os\nprint(oct(os.umask(0)))\n")
    rig.start(script, umask=0o777)
    assert stat.S_IMODE(rig.house.stat().st_mode) == 0o700
    assert rig.served(script, umask=0o777).stdout == b"0o777\n"


# -- limits that count when a process starts ------------------------------------------

STACK = (
    "import ctypes\n"
    "libc, attributes, size = ctypes.CDLL(None), ctypes.create_string_buffer(256), ctypes.c_size_t()\n"
    "libc.pthread_getattr_default_np(attributes)\n"
    "libc.pthread_attr_getstacksize(attributes, ctypes.byref(size))\n"
    "print(size.value)\n"
)


def test_threads_have_stacks_as_large_as_plainly(rig: "Rig") -> None:
    script = rig.script("stack", STACK)
    sizes = [4 << 20, 6 << 20]
    for size in sizes:
        limit = limited(resource.RLIMIT_STACK, size)
        rig.start(script, preexec_fn=limit)
        assert rig.served(script, preexec_fn=limit).stdout == rig.plain(script, preexec_fn=limit).stdout
        assert rig.served(script, preexec_fn=limit).stdout == b"%d\n" % size


# -- what a server needs for itself ---------------------------------------------------

HELD = "import os, sys\nprint('up', flush=True)\nsys.stdin.read()\nos._exit(7)\n"


def server_of(rig: "Rig") -> int:
    """Return the process that serves."""
    (server,) = runtime_directory.servers(str(rig.house))
    return server.pid


def held(rig: "Rig", script: str, **options: object) -> "subprocess.Popen[bytes]":
    """Start a command that waits for the end of its input, in a worker."""
    process: subprocess.Popen[bytes] = subprocess.Popen(
        [UNSNARL, "warm", "run", "--require", "--", script],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=rig.env, cwd=rig.directory / "work",
        **options,  # type: ignore[call-overload]
    )  # fmt: skip
    rig.processes.append(process)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n", rig.log()
    return process


def statuses(processes: "list[subprocess.Popen[bytes]]") -> set[int]:
    """Let commands end, and return their results."""
    for process in processes:
        process.communicate(timeout=WATCHDOG_S)
    return {process.returncode for process in processes}


def test_a_server_is_not_bound_by_the_limits_of_who_has_started_it(rig: "Rig") -> None:
    script = rig.script("held", HELD)
    narrow = {resource.RLIMIT_NOFILE: 256, resource.RLIMIT_CPU: 600, resource.RLIMIT_FSIZE: 1 << 30}

    def arrange() -> None:
        for which, soft in narrow.items():
            limited(which, soft)()

    rig.start(script, preexec_fn=arrange)
    for which in narrow:
        soft, hard = resource.prlimit(server_of(rig), which)
        assert soft == hard
    assert statuses([held(rig, script, preexec_fn=arrange)]) == {7}


def test_a_server_without_a_descriptor_left_serves_on(rig: "Rig") -> None:
    script = rig.script("held", HELD)
    rig.start(script)
    highest = max(int(fd) for fd in os.listdir(f"/proc/{server_of(rig)}/fd"))
    resource.prlimit(server_of(rig), resource.RLIMIT_NOFILE, (highest + 2, highest + 2))
    assert statuses([held(rig, script) for _ in range(4)]) == {7}
    assert "Error" not in rig.log()


def test_a_server_takes_no_more_than_it_has_descriptors_for(rig: "Rig") -> None:
    def arrange() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (HIGH_FD + 66, HIGH_FD + 66))

    script = rig.script("held", HELD)
    rig.start(script, preexec_fn=arrange)
    first = server_of(rig)
    processes = [held(rig, script, preexec_fn=arrange) for _ in range(3)]
    until(lambda: "ends, it has no descriptors for more" in rig.log())
    rig.start(script, preexec_fn=arrange)
    assert server_of(rig) != first
    assert statuses([*processes, held(rig, script, preexec_fn=arrange)]) == {7}


# -- what imports set in the process ---------------------------------------------------

SETS = """
import resource, signal, sys
for signum in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
    signal.signal(signum, lambda number, frame: print('handled', number))
resource.setrlimit(resource.RLIMIT_NOFILE, (512, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
sys.stdout.reconfigure(line_buffering=True)
"""
SHOWS = """
import os, resource, signal, sys
import sets
for signum in (signal.SIGTERM, signal.SIGCHLD, signal.SIGUSR1):
    os.kill(os.getpid(), signum)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], sys.stdin.line_buffering, sys.stdout.line_buffering)
"""


def test_what_imports_set_in_the_process_stays(rig: "Rig") -> None:
    (rig.directory / "bin" / "sets.py").write_text(SETS)
    script = rig.script("shows", SHOWS)
    rig.start(script)
    plain, warm = rig.plain(script), rig.served(script)
    assert (warm.returncode, warm.stdout) == (plain.returncode, plain.stdout), rig.log()
    assert b"512 False True" in plain.stdout


def test_what_imports_set_to_what_it_was_in_the_server_stays(rig: "Rig") -> None:
    text = "import resource, signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
    hard = "resource.getrlimit(resource.RLIMIT_NOFILE)[1]"
    (rig.directory / "bin" / "sets.py").write_text(
        f"{text}resource.setrlimit(resource.RLIMIT_NOFILE, (4096, {hard}))\n"
    )
    text = "import resource, signal, sets\nprint(resource.getrlimit(resource.RLIMIT_NOFILE)[0], signal.getsignal(2))\n"
    script = rig.script("shows", text + "print(resource.setrlimit, signal.signal.__wrapped__)\n")
    rig.start(script, preexec_fn=limited(resource.RLIMIT_NOFILE, 4096))

    def arrange() -> None:
        limited(resource.RLIMIT_NOFILE, 1024)()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    plain = rig.plain(script, preexec_fn=arrange).stdout
    assert plain.startswith(b"4096 0\n")
    assert rig.served(script, preexec_fn=arrange).stdout == plain


def test_a_stream_is_not_line_buffered_on_a_terminal_if_an_import_has_said_so(rig: "Rig") -> None:
    (rig.directory / "bin" / "sets.py").write_text("import sys\nsys.stdout.reconfigure(line_buffering=False)\n")
    shown = "print(sys.stdout.line_buffering, sys.stderr.line_buffering, sys.stdout.reconfigure.__class__.__name__)\n"
    script = rig.script("shows", "import sys, sets\n" + shown)
    on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)
    served = on_a_terminal(rig, UNSNARL, "warm", "run", "--require", "--", script)
    assert served == on_a_terminal(rig, script)
    assert b"False True builtin" in served[1]


def test_a_successor_imports_under_the_limits_of_the_first_caller(rig: "Rig") -> None:
    text = "import resource\nSOFT, HARD = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
    (rig.directory / "bin" / "sets.py").write_text(text + "resource.setrlimit(resource.RLIMIT_NOFILE, (HARD, HARD))\n")
    (rig.directory / "bin" / "look.py").write_text("")
    text = "import importlib, resource, sys, sets\nprint(sets.SOFT, resource.getrlimit(resource.RLIMIT_NOFILE)[0])\n"
    script = rig.script(
        "shows", text + "print('look' in sys.modules)\n[importlib.import_module(m) for m in sys.argv[1:]]\n"
    )

    def arrange() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096))

    rig.start(script, preexec_fn=arrange)
    plain = rig.plain(script, preexec_fn=arrange).stdout
    assert plain == b"1024 4096\nFalse\n"
    assert rig.served(script, "look", preexec_fn=arrange).stdout == plain
    until(lambda: (found := rig.warm(script, preexec_fn=arrange).stdout).endswith(b"True\n") or found != plain)
    assert rig.served(script, preexec_fn=arrange).stdout == plain.replace(b"False", b"True")


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_streams_on_a_terminal_are_buffered_alike(rig: "Rig", unbuffered: str) -> None:
    text = "import sys\nprint([(s.line_buffering, s.write_through) for s in (sys.stdin, sys.stdout, sys.stderr)])\n"
    script = rig.script("shows", text)
    rig.env |= {"PYTHONUNBUFFERED": unbuffered}
    on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)
    served = on_a_terminal(rig, UNSNARL, "warm", "run", "--require", "--", script)
    assert served == on_a_terminal(rig, script)


def test_a_start_sweeps_what_is_over(rig: "Rig") -> None:
    script = rig.script("hello", "print('run')\n")
    rig.start(script)
    assert rig.verb("stop").returncode == 0
    before = set(rig.house.iterdir())
    for path in before:
        os.utime(path, (0, 0))
    (rig.directory / "bin" / "hello").rename(rig.directory / "bin" / "renamed")
    rig.start(str(rig.directory / "bin" / "renamed"))
    until(lambda: not any(path.exists() for path in before))
    assert rig.served(str(rig.directory / "bin" / "renamed")).stdout == b"run\n"


def learner(facts: Path) -> list[str]:
    """Return the lines of the facts that identify the learning process."""
    return [line for line in facts.read_text().splitlines() if line.startswith("learner")]


def test_what_was_learned_of_a_command_that_is_called_again_is_kept(rig: "Rig") -> None:
    script = rig.script("hello", "print('run')\n")
    rig.start(script)
    (facts,) = rig.house.glob("*.facts")
    record = facts.with_suffix(".rec")

    def age() -> None:
        for path in (facts, record):
            os.utime(path, (0, 0))

    learned = learner(facts)
    assert rig.verb("stop").returncode == 0
    age()
    rig.start(script)
    assert learner(facts) == learned
    # Also while a server serves it.
    age()
    until(lambda: rig.served(script).stdout == b"run\n" and facts.stat().st_mtime > 0)
