"""Confines this process to some cores or to a scheduling policy, and becomes another program by exec.

    python -I -S confine.py CORES POLICY PARENT COMMAND...

CORES is a number or ``all``, POLICY is ``other`` or ``rr``. PARENT is the pid of the process whose
end, even by SIGKILL, also ends the command. Run by path, isolated.
Invariant: it execs, so no process stands between the runner and the measured process.
"""

import os
import sys

ROUND_ROBIN_PRIORITY = 1
"""The lowest real-time priority: above every ordinary process, below the kernel's threads."""

PR_SET_PDEATHSIG, SIGKILL = 1, 9
"""From linux/prctl.h: sets the signal for the parent's death, which survives exec (prctl(2))."""


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
    """Let the kernel kill this process when its parent ends; exit if the parent has ended already."""
    try:
        import ctypes
    except ImportError:  # a build without ctypes: the parent ends the command in every other case
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent has ended")


if __name__ == "__main__":
    main()
