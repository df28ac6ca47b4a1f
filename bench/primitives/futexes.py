"""Futex calls per round trip of two threads in ping-pong.

The kernel's tracepoint (`perf stat`) counts them, without slowing anything down. Where that is not permitted,
`strace -c -f` does, which makes every call slow and thereby changes which thread waits.

    python -m bench.primitives.futexes SCENE LIBRARY ROUNDS

plays one scene. Invariant: a process makes far more rounds than its start makes calls.
"""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial

from bench.machine import ROOT
from bench.primitives.contended import PROGRAMS
from bench.primitives.scene import CALLS, OURS, STANDARD, Scene, libraries

ROUNDS = 2000
EVENT = "syscalls:sys_enter_futex"
COUNTERS: dict[str, tuple[list[str], str]] = {
    "perf": (["perf", "stat", "-x,", "-e", EVENT], rf"^(\d+),,{EVENT}"),
    "strace": (["strace", "-f", "-c", "-e", "trace=futex"], r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s.*futex$"),
}


def count(counter: str, scene: str, library: str) -> float:
    """Return the futex calls per round trip as a counter counts them."""
    prefix, pattern = COUNTERS[counter]
    command = [*prefix, sys.executable, "-m", "bench.primitives.futexes", scene, library, str(ROUNDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    found = re.search(pattern, done.stderr, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"{counter} did not count: {done.stderr.strip().splitlines()[-1:]}")
    return int(found[1]) / ROUNDS


def counters() -> list[str]:
    """Return the counters that work on this machine."""
    usable: list[str] = []
    for name, (prefix, _) in COUNTERS.items():
        try:
            done = subprocess.run([*prefix, "true"], capture_output=True, check=False)
        except OSError:
            continue
        if done.returncode == 0:
            usable.append(name)
    if not usable:
        print("futex calls are not counted: neither perf nor strace works here", file=sys.stderr)
    return usable


def scenes() -> list[Scene]:
    """Return every scene of this kind."""
    return [
        Scene(
            f"{scene}, futex calls ({counter})",
            CALLS,
            {library: partial(count, counter, scene, library) for library in (STANDARD, OURS)},
            goal=2,
        )
        for counter in counters()
        for scene in PROGRAMS
        if "ping-pong" in scene
    ]


def main() -> None:
    """Play one scene."""
    scene, library, rounds = sys.argv[1:]
    PROGRAMS[scene][0](libraries()[library], int(rounds))


if __name__ == "__main__":
    main()
