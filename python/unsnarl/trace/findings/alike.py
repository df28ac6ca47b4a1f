"""Groups findings that say the same about several processes: of forty children with one cause, one row is read.

Pure: findings in, groups out. The page and the data keep each process's own findings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from unsnarl.trace.findings.finding import Finding, duration


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one kind, at one place, with the same remedy.

    Attributes:
        worst: the finding that stands for all: the one about the most time.
        others: the findings about other processes, in their order.
    """

    worst: Finding
    others: list[Finding]

    @property
    def together(self) -> str:
        """Return in words the time of all, or an empty string if there is one finding, or no time is known."""
        times = [_time_ns(finding) for finding in (self.worst, *self.others)]
        if not self.others or not all(times):
            return ""
        return f"in all {len(times):,} processes: {duration(sum(times))}"


def groups(findings: list[Finding], programs: Mapping[int, str]) -> list[Group]:
    """Return the findings in groups, at most one of each process in a group, in the order of the first of each.

    ``programs`` has what each process runs: findings without a place are alike only for the same program.
    """
    by_key: dict[tuple[object, ...], list[Finding]] = defaultdict(list)
    of_process: Counter[tuple[object, ...]] = Counter()
    for finding in findings:
        key = _key(finding, programs)
        by_key[of_process[key, finding.pid], key].append(finding)
        of_process[key, finding.pid] += 1
    return [_group(group) for group in by_key.values()]


def _group(findings: list[Finding]) -> Group:
    worst = max(findings, key=_time_ns)
    return Group(worst, [finding for finding in findings if finding is not worst])


def program_of(command: list[str]) -> str:
    """Return which program a command line runs: a script, a module, or the text after ``-c``."""
    words = command[1:3] if command[1:2] in (["-c"], ["-m"]) else command[1:2]
    return " ".join(words)


def _key(finding: Finding, programs: Mapping[int, str]) -> tuple[object, ...]:
    remedies = tuple((remedy.what, remedy.command) for remedy in finding.remedies)
    # Where each process spent its time is its own.
    own = finding.pid if finding.kind == "time" else None if finding.place else programs.get(finding.pid or 0)
    return finding.kind, finding.place, finding.severity, remedies, own


def _time_ns(finding: Finding) -> float:
    for name in ("start_ns", "total_ns"):
        value = finding.figures.get(name)
        if isinstance(value, (int, float)):
            return value
    return 0
