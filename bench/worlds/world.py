"""The worlds: where a measured process may run, and what else runs meanwhile.

Invariant: when the ``with`` block of `inhabited` ends, no process and no control group of a world is left,
and a killed benchmark leaves no busy process behind either (the kernel ends them with their parent).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

BUSY = "while True: pass"
ENTER = Path(__file__).with_name("enter.py")
CPU_CONTROLLERS = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))
"""Where the kernel's processor controller is mounted: version 1 with a folder of its own, or version 2."""
PERIOD_US = 100_000
"""The kernel's default period of a processor quota, in microseconds."""
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class World(NamedTuple):
    """What a measured process meets."""

    name: str
    title: str
    busy_per_processor: int = 0
    busy: int = 0
    """Busy processes in all, in addition to those for each processor."""
    processors: int | None = None
    """How many processors the measured process may use; None for all."""
    quota: float | None = None
    """The processors' time it may use, in processors; None for no limit."""
    nice: int = 0

    def busy_processes(self) -> int:
        """Return how many busy processes run meanwhile."""
        return self.busy + self.busy_per_processor * len(os.sched_getaffinity(0))


WORLDS = (
    World("idle", "idle machine"),
    World("busy", "a busy process for each processor", busy_per_processor=1),
    World("busy1", "one busy process", busy=1),
    World("one", "one processor", processors=1),
    World("half", "half a processor (control group)", quota=0.5),
    World("nice", "nice 19, and a busy process for each processor", busy_per_processor=1, nice=19),
)


class Unavailable(Exception):  # noqa: N818 -- a fact about the machine, and no mistake of the caller's
    """This machine does not have such a world."""


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def inhabited(world: World) -> Generator[list[str]]:
    """Start what a world has next to the measured process; yield the words that put a command into it.

    Raises:
        Unavailable: it needs a control group, and none can be made.
    """
    with contextlib.ExitStack() as stack:
        group = stack.enter_context(_group(world.quota)) if world.quota is not None else "-"
        for _ in range(world.busy_processes()):
            stack.enter_context(_busy())
        processors = "all" if world.processors is None else str(world.processors)
        yield [sys.executable, "-I", "-S", str(ENTER), processors, str(world.nice), group]


@contextlib.contextmanager
def _busy() -> Generator[None]:
    # The two calls that run before exec take no lock that another thread of this process could hold.
    process = subprocess.Popen([sys.executable, "-I", "-S", "-c", BUSY], preexec_fn=_end_with_parent)  # noqa: PLW1509
    try:
        yield
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def _group(quota: float) -> Generator[str]:
    """Make a control group with ``quota`` processors; yield the file by which a process joins it."""
    for root in CPU_CONTROLLERS:
        folder = root / f"unsnarl-worlds-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            _limit(folder, quota)
            yield str(folder / "cgroup.procs")
            return
        except FileNotFoundError:
            continue
        finally:
            folder.rmdir()
    raise Unavailable("no control group with a processor quota can be made here")


def _limit(folder: Path, quota: float) -> None:
    quota_us = int(quota * PERIOD_US)
    if (version_1 := folder / "cpu.cfs_quota_us").exists():
        (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
        version_1.write_text(str(quota_us))
    elif (version_2 := folder / "cpu.max").exists():
        version_2.write_text(f"{quota_us} {PERIOD_US}")
    else:
        raise FileNotFoundError(folder)
