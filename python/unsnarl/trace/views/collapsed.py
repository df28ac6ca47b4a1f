"""Stacks in collapsed form, which flamegraph.pl, speedscope and inferno read.

    MainThread;app.py:serve:40;socket.py:readinto:719;waiting for the GIL 5123

One line for each thread, stack and state, the outermost frame first, with the
microseconds spent there. Stretches without a recorded stack have no frames.
"""

from __future__ import annotations

import os

from unsnarl.trace.model import STATES, Process
from unsnarl.trace.views.chrome import NAMES


def lines(processes: list[Process]) -> list[str]:
    """Return all lines, sorted by their text."""
    result: list[str] = []
    for process in processes:
        for number, state, node, time_ns in process.stacks:
            micros = time_ns // 1000
            if micros:
                frames = [
                    f"{os.path.basename(line.file)}:{line.function}:{line.line}" for line in process.stack(node)[::-1]
                ]
                words = [process.label(number), *frames, NAMES[STATES[state]]]
                result.append(f"{';'.join(word.replace(';', ',') for word in words)} {micros}")
    return sorted(result)
