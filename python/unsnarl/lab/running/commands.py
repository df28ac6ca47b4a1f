"""The commands whose start is measured, and their preparation as plain, warm or packed commands.

Invariant: a warm or packed command is prepared before the measurement, and the preparation is removed
afterwards. Servers use a temporary runtime directory: the user's servers are neither used nor
stopped, and nothing that was learned is kept.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from unsnarl.doctor import warmth
from unsnarl.lab import presence
from unsnarl.lab.running.process import Done, LaunchContext, Run, RunFailed, execute
from unsnarl.warm.managing import runtime_directory

COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("python", "-c", "pass"),
    "python -I -S -c pass": ("python", "-I", "-S", "-c", "pass"),
    "pip --version": ("pip", "--version"),
    "hg --version -q": ("hg", "--version", "-q"),
    "black --version": ("black", "--version"),
    "http --version": ("http", "--version"),
    "git --version": ("git", "--version"),
}
"""The interpreter, console scripts of its environment, and a program that is not Python's."""


def script_of(name: str) -> str:
    """Return the console script of a command, or an empty string for the interpreter."""
    return COMMANDS[name][0].removesuffix("python")


PLAIN_ONLY = ("", *presence.OTHER_PROGRAMS)
"""The scripts of commands that can be neither warm nor packed: the interpreter has none."""

QUICK = ("python -c pass", "pip --version")
STORM = ("hg --version -q", "pip --version")
QUICK_STORM = ("pip --version",)

PREPARING_S = 60.0
"""Seconds that learning or packing may take."""

LEARNING_RUNS = 4
"""Runs of a warm command before the measurement; each can add modules that are imported ahead afterwards."""
POLL_S, QUIET_POLLS = 0.05, 4
"""Seconds between polls for a learning server, and consecutive polls that must find none."""
LEARNING_LIMIT_S = 20.0
"""Seconds after which polling ends."""


class Prepared(NamedTuple):
    """A command line, and the context in which it is launched."""

    path: str
    """The command itself."""
    words: list[str]
    context: LaunchContext


@contextlib.contextmanager
def prepared(run: Run, words: tuple[str, ...]) -> Generator[Prepared]:
    """Yield a command that is prepared for a variant.

    All runs use one working directory: it belongs to the key of a warm server if the command's imports
    read it, as pip's do.

    Raises:
        RunFailed: the command is not installed, or cannot be started in this variant.
    """
    path = located(run.python, words[0])
    with tempfile.TemporaryDirectory() as directory, own_runtime_directory() as variables:
        context = LaunchContext(directory, variables)
        with launched(run, path, context) as first:
            command = Prepared(path, [*first, *words[1:]], context)
            if run.variant.launcher == "warm":
                learn(run, command)
            yield command


@contextlib.contextmanager
def own_runtime_directory() -> Generator[dict[str, str]]:
    """Yield the variable that names a temporary runtime directory for warm servers, and the one that lets them learn.

    It is in /tmp regardless of TMPDIR, since a socket's address has at most 107 bytes.
    """
    with tempfile.TemporaryDirectory(prefix="unsnarl-lab-", dir="/tmp") as directory:
        yield {"UNSNARL_WARM_DIR": directory, "UNSNARL_WARM_SPEND": "any"}


def start(run: Run, command: Prepared) -> Done:
    """Run a command once; if its server was being replaced, run it again and return the second run.

    The server of a warm command is replaced if learning has changed its key; the command has not run then.

    Raises:
        RunFailed: the command failed.
    """
    confinement, limit_s = run.case.confinement, run.case.limit_s
    try:
        return execute(command.words, confinement, limit_s, command.context)
    except RunFailed as failure:
        if run.variant.launcher != "warm" or not str(failure).startswith(f"exit status {warmth.NOT_WARM}"):
            raise
    await_server(run, command.path, command.context)
    return execute(command.words, confinement, limit_s, command.context)


def learn(run: Run, command: Prepared) -> None:
    """Run a warm command several times, until its server has learned from each run.

    Raises:
        RunFailed: a run failed.
    """
    for _ in range(LEARNING_RUNS):
        start(run, command)
        wait_until_learned(Path(command.context.variables["UNSNARL_WARM_DIR"]))


def wait_until_learned(runtime: Path) -> None:
    """Wait, with a limit, until a server is present in a runtime directory and none learns or starts."""
    quiet, ends_s = 0, time.monotonic() + LEARNING_LIMIT_S
    while quiet < QUIET_POLLS and time.monotonic() < ends_s:
        time.sleep(POLL_S)
        is_busy = any(runtime.glob("*.news")) or any(runtime.glob("learn-*")) or not any(runtime.glob("*.sock"))
        quiet = 0 if is_busy else quiet + 1


def launched(run: Run, path: str, context: LaunchContext) -> contextlib.AbstractContextManager[list[str]]:
    """Return a context manager that yields the words that start a command in a variant."""
    match run.variant.launcher:
        case "warm":
            return warmed(run, path, context)
        case "packed":
            return packed(run, path)
        case _:
            return contextlib.nullcontext([path])


def located(python: str, name: str) -> str:
    """Return the path of a command.

    Raises:
        RunFailed: the environment has no command of that name.
    """
    if name == "python":
        return python
    path = presence.command_of(python, name)
    if path is None:
        raise RunFailed(str(presence.reason_against_command(python, name)))
    return path


@contextlib.contextmanager
def warmed(run: Run, path: str, context: LaunchContext) -> Generator[list[str]]:
    """Start a command's server, yield the client's words for the command, and stop all servers afterwards.

    Raises:
        RunFailed: the command cannot be warm.
    """
    warm = [located(run.python, "unsnarl"), "warm"]
    try:
        await_server(run, path, context)
        yield [*warm, "run", "--require", "--", path]
    finally:
        with contextlib.suppress(RunFailed):
            execute([*warm, "stop"], run.case.confinement, PREPARING_S, context)


def await_server(run: Run, path: str, context: LaunchContext) -> None:
    """Start a command's server if there is none, and wait until it serves.

    Raises:
        RunFailed: the command cannot be warm.
    """
    words = [located(run.python, "unsnarl"), "warm", "start", "--", path]
    execute(words, run.case.confinement, PREPARING_S, context)


def server_times(context: LaunchContext) -> dict[int, float]:
    """Return the processor time in seconds of each server of a context by pid, including ended workers."""
    servers = runtime_directory.servers(context.variables["UNSNARL_WARM_DIR"])
    times = ((server.pid, _processor_s(server.pid)) for server in servers)
    return {pid: time_s for pid, time_s in times if time_s is not None}


def _processor_s(pid: int) -> float | None:
    """Return the time of a process and its reaped children (proc_pid_stat(5)); None if the process has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def packed(run: Run, path: str) -> Generator[list[str]]:
    """Make a pack of a command with its launcher, and yield the launcher's path.

    Raises:
        RunFailed: the command cannot be packed.
    """
    with tempfile.TemporaryDirectory() as folder:
        pack, launcher = str(Path(folder, "lab.pack")), str(Path(folder, "lab"))
        making = ["pack", path, "-o", pack, "--launcher", launcher]
        execute([located(run.python, "unsnarl"), *making], run.case.confinement, PREPARING_S)
        yield [launcher]
