"""Parses the lines that ``python -X importtime`` writes to stderr, among the program's own lines.

    import time:       123 |        456 |   package.module

A module's line follows those of the modules that it imported, which are indented by two more
spaces (``Python/import.c``, ``import_find_and_load``). Times are microseconds. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"^import time:\s+(?P<self>\d+) \|\s+(?P<total>\d+) \| (?P<indent> *)(?P<name>\S+)\s*$")


@dataclass(frozen=True, slots=True)
class ImportTime:
    """A module: the depth of its import, and its own and its total time in microseconds."""

    name: str
    depth: int
    self_us: int
    total_us: int


def parse(lines: Iterable[str]) -> list[ImportTime]:
    """Return the modules in the order in which their imports ended."""
    found: list[ImportTime] = []
    for line in lines:
        match = _LINE.match(line)
        if match:
            depth = len(match["indent"]) // 2
            found.append(ImportTime(match["name"], depth, int(match["self"]), int(match["total"])))
    return found


def total_us(modules: Iterable[ImportTime]) -> int:
    """Return the time of all imports together."""
    return sum(module.total_us for module in modules if module.depth == 0)


def slowest(modules: Iterable[ImportTime], count: int = 8) -> list[ImportTime]:
    """Return the modules with the longest own time."""
    return sorted(modules, key=lambda module: -module.self_us)[:count]
