"""Provides a warm server for the duration of the examination, if the command can have one.

Invariant: a server that was running before is left alone; a server that was started for the
examination is stopped after it.
"""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

from unsnarl.doctor import trial


@contextmanager
def server(command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> Generator[list[str]]:
    """Ensure a server for a command; yield the words that run the command warm, or none if it cannot run warm.

    Args:
        command: a console script and its arguments, or nothing.
        environment: of all processes.
        limit_s: seconds each of them may take.
    """
    unsnarl = os.path.join(sysconfig.get_path("scripts"), "unsnarl")
    if not command or not os.access(unsnarl, os.X_OK):
        yield []
        return
    words = [unsnarl, "warm", "run", "--require", "--", *command]
    was_warm = trial.run_command(words, environment, limit_s).status != NOT_WARM
    try:
        if not was_warm:
            trial.run_command([unsnarl, "warm", "start", "--", command[0]], environment, limit_s)
        # Twice: after its first run, a server that has learned from it is being replaced.
        is_warm = was_warm or any(trial.run_command(words, environment, limit_s).status != NOT_WARM for _ in range(2))
        yield words if is_warm else []
    finally:
        if not was_warm:
            trial.run_command([unsnarl, "warm", "stop", command[0]], environment, limit_s)


NOT_WARM = 69
"""The status of ``unsnarl warm run --require`` if the command would run plainly."""
