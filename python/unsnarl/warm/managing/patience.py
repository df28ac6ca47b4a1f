"""How long a learning run waits at idle priority on a machine that has no processor left for it.

The run is ended, and made again at the usual priority, once as many calls have come plainly as the run costs: from
then on the wait costs more than the run. It is not ended while more would be thrown away with it than those calls pay:

```text
the wait is over  ⇔  calls ≥ CALLS  and  100 · used ≤ share · calls · plain
```

| word | meaning |
|---|---|
| ``calls`` | plain calls of the command since the run began |
| ``used`` | processor time that the run has had, with its threads and children, which is lost with it |
| ``plain`` | processor time of a plain call |
| ``share`` | what may be lost, in percent (crates/client/src/server/economy.rs) |

So the bound of the economy holds for what is thrown away as well. A machine that is full of other work, with few
calls of the command, is left alone for as long as :data:`LONGEST_S` says.

Invariant: ``used`` is never less than what is lost. If it is unknown, the run is not ended early.

Considered and not built: priority 19 instead of SCHED_IDLE, which on a full machine is a hundredth of a processor; and
back from SCHED_IDLE to the usual policy, which the kernel allows only with privileges.
"""

from __future__ import annotations

import os
import subprocess
import time

from unsnarl.warm import ledger

# Plain calls that one learning run costs: 2.5 for `hg`, 1.5 for `pip`, 1.4 for `black`, 0.8 for `aws`
# (docs/design/warm.md).
CALLS = 3
# Seconds after which the wait is over in any case, and between two looks.
LONGEST_S, STEP_S = 20, 0.1
# Share, in percent, if the user sets none (`SHARE_PERCENT` in the client).
SHARE_PERCENT = 10
HEAD = "unsnarl-calls "


def is_over(calls: int, used_ms: float | None, plain_ms: int, share_percent: int) -> bool:
    """Return whether waiting costs more than making the run again.

    Without a known plain call, and without known costs of the run, it never does.
    """
    if used_ms is None or calls < CALLS or plain_ms <= 0:
        return False
    return 100 * used_ms <= share_percent * calls * plain_ms


class Patience:
    """Watches the calls of one command; ``stem`` is the path of its files, without suffix."""

    def __init__(self, stem: str, environment: dict[bytes, bytes]) -> None:
        self._stem = stem
        self._share_percent = share_percent(environment.get(b"UNSNARL_WARM_SPEND", b""))

    def waits_for(self, run: subprocess.Popen[bytes]) -> bool:
        """Wait for a run at idle priority; return whether it has ended before the wait was over."""
        plain_ms, calls_before = ledger.read(self._stem).call_ms, _calls(self._stem)
        ends_s = time.monotonic() + LONGEST_S
        while True:
            try:
                run.wait(STEP_S)
            except subprocess.TimeoutExpired:
                calls = _calls(self._stem) - calls_before
                if time.monotonic() >= ends_s or is_over(calls, used_ms(run.pid), plain_ms, self._share_percent):
                    return False
            else:
                return True


def used_ms(pid: int) -> float | None:
    """Return the milliseconds of processor time of a process, with its threads and children; None if unknown."""
    try:
        return _used_ms(pid)
    except (OSError, ValueError, IndexError):
        return None


def share_percent(text: bytes) -> int:
    """Return the share that the user has set, or the usual one."""
    return int(text) if text.isdigit() and text.isascii() else SHARE_PERCENT


def _used_ms(pid: int) -> float:
    # The clock of a process, for all threads that it has had: CPUCLOCK_SCHED, by MAKE_PROCESS_CPUCLOCK in
    # include/linux/posix-timers.h of the kernel.
    used = time.clock_gettime_ns((~pid << 3) | 2) / 1e6
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
            used += sum(_used_ms(int(child)) for child in file.read().split())
    with open(f"/proc/{pid}/stat", "rb") as status:
        fields = [*map(int, status.read().rpartition(b")")[2].split()[1:])]
    # Of children that were waited for: page faults, of which each process has some, and times in whole ticks (proc(5)).
    faults, ticks = fields[7], fields[12] + fields[13]
    return used + (1000 * (ticks + 2) / os.sysconf("SC_CLK_TCK") if faults else 0)


def _calls(stem: str) -> int:
    """Return how many calls of a command ran plainly (crates/client/src/server/calls.rs)."""
    try:
        with open(stem + ".calls", encoding="utf-8", errors="replace") as file:
            return int(file.readline().removeprefix(HEAD).partition(" ")[2])
    except (OSError, ValueError):
        return 0
