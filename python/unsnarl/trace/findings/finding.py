"""What a trace means: each finding names a cause, the thread and the line, and a remedy.

A finding is drawn from what was recorded, by rules with the constants below; where
nothing meets a rule, that is said as well. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from unsnarl.trace.model import Process

Figures = dict[str, float | int | str]

PACK = "unsnarl pack"
"""The command of the remedy that shortens a cold start."""

SEVERE, NOTABLE, FINE = "severe", "notable", "fine"
"""Costs much of the program's time; costs some; costs nothing, or nothing can be done."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What can be done about a finding.

    Attributes:
        what: the change, in words.
        command: the part of unsnarl that does it, as it is called, or None.
        helps: whether unsnarl helps.
        saves_ns: the most it can save, predicted from the trace; None if that cannot be told.
    """

    what: str
    command: str | None = None
    helps: bool = False
    saves_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One conclusion.

    Attributes:
        kind: a word for programs: ``convoy``, ``long-hold``, ``square``, ``cpu-bound``,
            ``hand-overs``, ``gil-waits``, ``contended-lock``, ``lock-waits``, ``futex-storm``,
            ``slow-import``, ``slow-start``, ``quick-start``, ``no-gil-contention``,
            ``no-lock-contention``, ``lost-records``.
        severity: SEVERE, NOTABLE or FINE.
        title: one line.
        details: further lines.
        thread: the thread it is about, or None.
        place: the line that causes it, as ``file:line in function``, or None.
        figures: the numbers behind it.
        remedy: what to do.
        pid: the process it is about.
        alternative: what else can be done, where the remedy cannot be.
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
        """Return the remedy and the alternative, as far as there are."""
        return [remedy for remedy in (self.remedy, self.alternative) if remedy is not None]


def duration(value_ns: float) -> str:
    """Write nanoseconds in the largest unit that leaves a digit before the point."""
    for size_ns, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if value_ns >= size_ns:
            value = value_ns / size_ns
            return f"{value:,.{2 if value < 10 else 1 if value < 100 else 0}f} {unit}"
    return f"{value_ns:.0f} ns"


def of_life(process: Process, part_ns: int, life_ns: int) -> str:
    """Write a share of a thread's life, or of what there are records of."""
    kept = "its life" if not process.records_from_ns else f"the {duration(life_ns)} of its life that are still recorded"
    return f"{share(part_ns, life_ns)} of {kept}"


def share(part: float, whole: float) -> str:
    """Write a share in percent."""
    percent = 100 * part / whole if whole else 0.0
    return f"{percent:.{0 if percent >= 10 else 1}f} %"
