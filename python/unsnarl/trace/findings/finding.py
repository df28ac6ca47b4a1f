"""A finding: a cause with the thread, the line and the remedy; and how durations and shares are written.

Pure. The rules and their thresholds are in ``gil``, ``locks`` and ``startup``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unsnarl.trace.model import Process

Figures = dict[str, float | int | str]

PACK = "unsnarl pack"
"""The command of the remedy that shortens a cold start."""

SEVERE, NOTABLE, FINE = "severe", "notable", "fine"
"""Costs much of the program's time; costs some of it; costs nothing, or cannot be improved."""


BY_DOCTOR = "`unsnarl doctor` measures whether the run gets shorter"
"""Ends the words of a remedy that is known to save something else than time; the doctor itself leaves this out."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A remedy for a finding.

    Attributes:
        what: the change, in words.
        command: the unsnarl command that does it, or None.
        helps: whether unsnarl helps.
        saves_ns: an upper bound of the saving, predicted from the trace; None if unknown.
    """

    what: str
    command: str | None = None
    helps: bool = False
    saves_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion.

    Attributes:
        kind: a machine-readable name: ``time``, ``loop-stall``, ``convoy``, ``long-hold``, ``no-processor``,
            ``square``, ``full-gil``, ``thread-per-timer``, ``thread-per-task``, ``cpu-bound``,
            ``hand-overs``, ``gil-waits``, ``contended-lock``, ``polling``, ``spinning``, ``short-calls``,
            ``task-waits``, ``stuck``, ``empty-pool``, ``pool-waits``, ``full-pool``, ``full-queue``, ``pickling``,
            ``lock-waits``, ``futex-storm``, ``slow-import``, ``slow-start``, ``quick-start``,
            ``no-gil-contention``, ``no-lock-contention``, ``lost-records``.
        severity: SEVERE, NOTABLE or FINE.
        title: one line.
        details: further lines.
        thread: the thread that the finding is about, or None.
        place: the line that causes it, as ``file:line in function``, or None.
        figures: the numbers behind the finding.
        remedy: the change that helps most.
        pid: the process that the finding is about.
        alternative: a second remedy, for programs that cannot use the first.
    """

    kind: str
    severity: str
    title: str
    details: list[str] = field(default_factory=list[str])
    thread: str | None = None
    place: str | None = None
    figures: Figures = field(default_factory=dict[str, float | int | str])
    remedy: Remedy | None = None
    pid: int | None = None
    alternative: Remedy | None = None

    @property
    def remedies(self) -> list[Remedy]:
        """Return the remedy and the alternative, if there are any."""
        return [remedy for remedy in (self.remedy, self.alternative) if remedy is not None]


def duration(value_ns: float) -> str:
    """Format nanoseconds in the largest unit with a digit before the point."""
    for size_ns, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value_ns >= size_ns:
            value = value_ns / size_ns
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{value_ns:.0f} ns"


def of_life(process: Process, part_ns: int, life_ns: int) -> str:
    """Format a share of a thread's life, or of the part of it that is still recorded."""
    kept = "its life" if not process.records_from_ns else f"the {duration(life_ns)} of its life that are still recorded"
    return f"{share(part_ns, life_ns)} of {kept}"


def share(part: float, whole: float) -> str:
    """Format a share in percent."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.{0 if percent >= 10 else 1}f} %"
