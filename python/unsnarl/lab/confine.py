"""Become another program, on some cores only or by another policy of the kernel.

    python -I -S confine.py CORES POLICY COMMAND...

CORES is a number or ``all``, POLICY is ``other`` or ``rr``. Run by path, isolated.
Invariant: it execs, so the process that is measured has no parent of ours between.
"""

import os
import sys

ROUND_ROBIN_PRIORITY = 1
"""The lowest: enough to come before every ordinary process, and after the kernel's own."""


def main() -> None:
    """Confine this process and become the command."""
    cores, policy, *command = sys.argv[1:]
    if cores != "all":
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
    if policy == "rr":
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(ROUND_ROBIN_PRIORITY))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
