"""Become another program, on some cores only or by another policy of the kernel.

    python -I -S confine.py CORES POLICY PARENT COMMAND...

CORES is a number or ``all``, POLICY is ``other`` or ``rr``. PARENT is the number of the
process whose end, even by SIGKILL, is the command's end as well. Run by path, isolated.
Invariant: it execs, so the process that is measured has no parent of ours between.
"""

import os
import sys

ROUND_ROBIN_PRIORITY = 1
"""The lowest: enough to come before every ordinary process, and after the kernel's own."""

PR_SET_PDEATHSIG, SIGKILL = 1, 9
"""From linux/prctl.h: the signal that comes when the parent ends, kept over exec (prctl(2))."""


def main() -> None:
    """Confine this process and become the command."""
    cores, policy, parent, *command = sys.argv[1:]
    if cores != "all":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    if policy == "rr":
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(ROUND_ROBIN_PRIORITY))
    bind(int(parent))
    os.execvp(command[0], command)


def bind(parent: int) -> None:
    """Let the kernel end this process when its parent ends, which may have happened already."""
    try:
        import ctypes
    except ImportError:  # a python that was built without it: the parent still ends the command in every other way
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent has ended")


if __name__ == "__main__":
    main()
