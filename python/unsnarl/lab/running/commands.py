"""Commands whose start is measured, and how they are started plain, warm and packed.

Invariant: a warm or packed command is prepared before it is measured, and what was
prepared is gone afterwards. Servers have a runtime directory of the laboratory's own:
those of the user are neither used nor stopped, and nothing that was learned is kept.
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
from unsnarl.warm import house

COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("python", "-c", "pass"),
    "python -I -S -c pass": ("python", "-I", "-S", "-c", "pass"),
    "pip --version": ("pip", "--version"),
    "hg --version -q": ("hg", "--version", "-q"),
    "black --version": ("black", "--version"),
    "http --version": ("http", "--version"),
}
"""What is started: the interpreter, and console scripts of its environment."""


def script_of(name: str) -> str:
    """Return the console script that is started under a name; nothing for the interpreter."""
    return COMMANDS[name][0].removesuffix("python")


SCRIPTS = tuple(filter(script_of, COMMANDS))
"""Those that can be warm or packed."""

QUICK = ("python -c pass", "pip --version")
STORM = ("hg --version -q", "pip --version")
QUICK_STORM = ("pip --version",)

PREPARING_S = 60.0
"""Seconds that learning or packing may take."""

LEARNING_RUNS = 4
"""Runs of a warm command before it is measured; each may load modules that are imported ahead afterwards."""
POLL_S, QUIET_POLLS = 0.05, 4
"""Seconds between looks at whether a server learns, and looks in a row that must find none."""
LEARNING_LIMIT_S = 20.0
"""Seconds after which that is given up."""


class Prepared(NamedTuple):
    """A command line, and where it is started."""

    path: str
    """The command itself."""
    words: list[str]
    context: LaunchContext


@contextlib.contextmanager
def prepared(run: Run, words: tuple[str, ...]) -> Generator[Prepared]:
    """Yield how a command is started in a variant.

    All of it happens in one directory: where imports ask for that, as pip's do, it belongs to
    the key of a warm server.

    Raises:
        RunFailed: the command is not there, or cannot be started in this way.
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
    """Yield the variable that names a runtime directory for warm servers, which is there for as long.

    In /tmp, whatever TMPDIR says: the address of a socket holds 107 bytes.
    """
    with tempfile.TemporaryDirectory(prefix="unsnarl-lab-", dir="/tmp") as directory:
        yield {"UNSNARL_WARM_DIR": directory}


def start(run: Run, command: Prepared) -> Done:
    """Start a command; once more, and only that counts, where its server was just being replaced.

    That happens to a warm command when learning has changed what belongs to its key: nothing has run then.

    Raises:
        RunFailed: it failed.
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
    """Run a warm command until its server has learned from that: what later runs find.

    Raises:
        RunFailed: it failed.
    """
    for _ in range(LEARNING_RUNS):
        start(run, command)
        wait_until_learned(Path(command.context.variables["UNSNARL_WARM_DIR"]))


def wait_until_learned(runtime: Path) -> None:
    """Wait until no server in a runtime directory learns or starts, and at least one is there; not for ever."""
    quiet, ends_s = 0, time.monotonic() + LEARNING_LIMIT_S
    while quiet < QUIET_POLLS and time.monotonic() < ends_s:
        time.sleep(POLL_S)
        is_busy = any(runtime.glob("*.news")) or any(runtime.glob("learn-*")) or not any(runtime.glob("*.sock"))
        quiet = 0 if is_busy else quiet + 1


def launched(run: Run, path: str, context: LaunchContext) -> contextlib.AbstractContextManager[list[str]]:
    """Return the words that start a command in a variant, for as long as they do."""
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
        RunFailed: the environment has none of that name.
    """
    if name == "python":
        return python
    path = presence.command_of(python, name)
    if path is None:
        raise RunFailed(str(presence.reason_against_command(python, name)))
    return path


@contextlib.contextmanager
def warmed(run: Run, path: str, context: LaunchContext) -> Generator[list[str]]:
    """Yield the client's words for a command whose server is running, and stop all servers afterwards.

    Raises:
        RunFailed: it cannot be warm.
    """
    warm = [located(run.python, "unsnarl"), "warm"]
    try:
        await_server(run, path, context)
        yield [*warm, "run", "--require", "--", path]
    finally:
        with contextlib.suppress(RunFailed):
            execute([*warm, "stop"], run.case.confinement, PREPARING_S, context)


def await_server(run: Run, path: str, context: LaunchContext) -> None:
    """Start a command's server unless there is one, and wait until it serves.

    Raises:
        RunFailed: it cannot be warm.
    """
    words = [located(run.python, "unsnarl"), "warm", "start", "--", path]
    execute(words, run.case.confinement, PREPARING_S, context)


def server_times(context: LaunchContext) -> dict[int, float]:
    """Return the processor time in seconds of each server of a context, ended workers included, by its number."""
    servers = house.servers(context.variables["UNSNARL_WARM_DIR"])
    times = ((server.pid, _processor_s(server.pid)) for server in servers)
    return {pid: time_s for pid, time_s in times if time_s is not None}


def _processor_s(pid: int) -> float | None:
    """Return the time of a process and of the children it has waited for (proc_pid_stat(5)); None if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def packed(run: Run, path: str) -> Generator[list[str]]:
    """Yield the word for the launcher of a command's pack, both of which are made for it.

    Raises:
        RunFailed: it cannot be packed.
    """
    with tempfile.TemporaryDirectory() as folder:
        pack, launcher = str(Path(folder, "lab.pack")), str(Path(folder, "lab"))
        making = ["pack", path, "-o", pack, "--launcher", launcher]
        execute([located(run.python, "unsnarl"), *making], run.case.confinement, PREPARING_S)
        yield [launcher]
