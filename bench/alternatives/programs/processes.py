"""An echo thread in a process whose CPU-bound work is done by other processes.

Its words are COUNTS NUMBER.
"""

from __future__ import annotations

import multiprocessing
import sys

import parts


def main(path: str, number: str) -> None:
    """Start the processes and the thread."""
    context = multiprocessing.get_context("fork")
    for index in range(int(number)):
        context.Process(target=parts.compute, args=(path, index), daemon=True).start()
    parts.serve_in_a_thread()


if __name__ == "__main__":
    main(*sys.argv[1:])
