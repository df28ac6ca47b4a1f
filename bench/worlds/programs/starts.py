"""Starts a command again and again: ``starts.py STARTS [COMMAND...]``. An operation is a start.

Without a command it starts the interpreter that runs it, on ``-c pass``: the child of a program under ``unsnarl run``
inherits the scheduler. The processor time of the children counts with this process's.
"""

from __future__ import annotations

import subprocess
import sys

from counted import report, timed


def main() -> None:
    """Start and report."""
    starts, command = int(sys.argv[1]), sys.argv[2:] or [sys.executable, "-c", "pass"]

    def work() -> None:
        for _ in range(starts):
            subprocess.run(command, check=True)

    report(starts, timed(work))


if __name__ == "__main__":
    main()
