"""Enter a world and become the measured command.

    python -I -S enter.py PROCESSORS NICE GROUP COMMAND...

PROCESSORS is a number or ``all``, NICE what is added to the nice value, GROUP the ``cgroup.procs`` file of the
control group to join, or ``-``. Run by path, isolated.
Invariant: it execs, so no process stands between the benchmark and the command.
"""

import os
import sys

processors, nice, group, *command = sys.argv[1:]
if processors != "all":
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(processors)])
if group != "-":
    with open(group, "w") as procs:
        procs.write(str(os.getpid()))
os.nice(int(nice))
os.execvp(command[0], command)
