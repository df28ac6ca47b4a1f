"""A real command, served by the warm server of each build.

Invariant: the servers use a runtime directory made for this measurement and are stopped at its end; the user's
servers are neither used nor stopped.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

from bench.warm.commands import environment, learn, repository, spawn_s

CANDIDATES = (("hg", "status"), ("pip", "--version"))
"""Commands to measure; the first whose script is in both environments is taken."""
SPAWNS = 10
"""Starts whose median is one figure."""


def choose(pythons: Mapping[str, str]) -> tuple[str, ...] | None:
    """Return the command to measure; None when the environments have none of the candidates in common."""
    folders = [Path(python).parent for python in pythons.values()]
    has_client = all((folder / "unsnarl").exists() for folder in folders)
    found = (words for words in CANDIDATES if has_client and all((folder / words[0]).exists() for folder in folders))
    return next(found, None)


@contextlib.contextmanager
def served(pythons: Mapping[str, str], words: tuple[str, ...]) -> Generator[Callable[[str], float]]:
    """Yield what times the command under a build, in milliseconds from spawn to exit; the servers have learned.

    Raises:
        RuntimeError: the command cannot be warm in one of the environments.
    """
    # In /tmp, even if TMPDIR is set: the address of a socket holds 107 bytes.
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-", dir="/tmp", ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        (scratch / "repository").mkdir()
        repository(scratch / "repository", Path(pythons["before"]).parent)
        lines = {side: _line(python, words) for side, python in pythons.items()}
        environs = {side: environment(scratch / side) for side in pythons}

        def time_ms(side: str) -> float:
            return statistics.median(spawn_s(lines[side], environs[side]) for _ in range(SPAWNS)) * 1e3

        try:
            with contextlib.chdir(scratch / "repository"):
                for side, line in lines.items():
                    subprocess.run(
                        [line[0], "warm", "start", "--", line[-len(words)]],
                        env=environs[side],
                        check=False,
                        stdout=subprocess.DEVNULL,
                    )
                    learn(line, environs[side])
                yield time_ms
        finally:
            for side, line in lines.items():
                command = [line[0], "warm", "stop"]
                subprocess.run(command, env=environs[side], check=False, stdout=subprocess.DEVNULL)


def _line(python: str, words: tuple[str, ...]) -> list[str]:
    """Return the words that start the command warm in an environment, and fail where that is not possible."""
    folder = os.path.dirname(python)
    return [f"{folder}/unsnarl", "warm", "run", "--require", "--", f"{folder}/{words[0]}", *words[1:]]
