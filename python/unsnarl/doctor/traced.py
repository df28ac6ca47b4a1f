"""Runs the command once under trace, and returns what was recorded."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from unsnarl.doctor import trial
from unsnarl.doctor.trial import Way
from unsnarl.run_settings import RunSettings
from unsnarl.trace import recordings
from unsnarl.trace.model import Process
from unsnarl.trace.running.sampling import sampled

CHUNKS = 4096


def run(words: Sequence[str], environment: Mapping[str, str], limit_s: float, *, scheduler: bool) -> list[Process]:
    """Run ``python WORDS...`` once under trace; return its processes, none if nothing could be read.

    Raises:
        OSError: the interpreter cannot be executed.
    """
    with tempfile.TemporaryDirectory(prefix="unsnarl-doctor-") as name:
        folder = Path(name)
        settings = RunSettings(
            main_pid=0,
            scheduler=scheduler,
            trace=name,
            trace_chunks=CHUNKS,
            executed_ns=time.monotonic_ns(),
        )
        with sampled(folder):
            trial.run(Way("traced", "", settings), words, environment, limit_s)
        try:
            return recordings.read(folder).processes
        except recordings.UnreadableTrace:
            return []
