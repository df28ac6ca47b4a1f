"""An echo thread beside CPU-bound threads.

Its words are COUNTS NUMBER [SWITCH_INTERVAL_S].
"""

from __future__ import annotations

import sys
import threading

import parts


def main(path: str, number: str, *interval: str) -> None:
    """Start the threads."""
    if interval:
        sys.setswitchinterval(float(interval[0]))
    for index in range(int(number)):
        threading.Thread(target=parts.compute, args=(path, index), daemon=True).start()
    parts.serve_in_a_thread()


if __name__ == "__main__":
    main(*sys.argv[1:])
