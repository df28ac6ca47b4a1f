"""Commands whose start is measured, and how they are started plain, warm and packed.

Invariant: a warm or packed command is prepared before it is measured, and what was
prepared is gone afterwards; only its own server is stopped.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from unsnarl.lab import presence
from unsnarl.lab.process import Run, RunFailed, execute

COMMANDS: dict[str, tuple[str, ...]] = {
    "python -c pass": ("python", "-c", "pass"),
    "python -I -S -c pass": ("python", "-I", "-S", "-c", "pass"),
    "pip --version": ("pip", "--version"),
    "hg --version -q": ("hg", "--version", "-q"),
    "black --version": ("black", "--version"),
    "http --version": ("http", "--version"),
}
"""What is started: the interpreter, and console scripts of its environment."""

SCRIPTS = tuple(name for name, words in COMMANDS.items() if words[0] != "python")
"""Those that can be warm or packed."""

QUICK = ("python -c pass", "pip --version")
STORM = ("hg --version -q", "pip --version")
QUICK_STORM = ("pip --version",)

PREPARING_S = 60.0
"""Seconds that learning or packing may take."""


class Prepared(NamedTuple):
    """A command line, and the directory that it is started in."""

    words: list[str]
    directory: str


@contextlib.contextmanager
def prepared(run: Run, words: tuple[str, ...]) -> Generator[Prepared]:
    """Yield how a command is started in a variant.

    All of it happens in one directory: where imports ask for that, as pip's do, it belongs to
    the key of a warm server.

    Raises:
        RunFailed: the command is not there, or cannot be started in this way.
    """
    path = located(run.python, words[0])
    with tempfile.TemporaryDirectory() as directory, launched(run, path, directory) as start:
        yield Prepared([*start, *words[1:]], directory)


def launched(run: Run, path: str, directory: str) -> contextlib.AbstractContextManager[list[str]]:
    """Return the words that start a command in a variant, for as long as they do."""
    match run.variant.launcher:
        case "warm":
            return warmed(run, path, directory)
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
        raise RunFailed(f"{name} is not installed beside the measured interpreter")
    return path


@contextlib.contextmanager
def warmed(run: Run, path: str, directory: str) -> Generator[list[str]]:
    """Yield the client's words for a command whose server is running, and stop the server afterwards.

    Raises:
        RunFailed: it cannot be warm.
    """
    warm = [located(run.python, "unsnarl"), "warm"]
    await_server(run, path, directory)
    try:
        yield [*warm, "run", "--require", "--", path]
    finally:
        with contextlib.suppress(RunFailed):
            execute([*warm, "stop", path], run.case.confinement, PREPARING_S)


def await_server(run: Run, path: str, directory: str) -> None:
    """Start a command's server unless there is one, and wait until it serves.

    Raises:
        RunFailed: it cannot be warm.
    """
    words = [located(run.python, "unsnarl"), "warm", "start", "--", path]
    execute(words, run.case.confinement, PREPARING_S, directory)


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
