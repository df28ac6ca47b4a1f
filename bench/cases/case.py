"""A case: its program, what was reported, and the figures that the program prints, read from the program's docstring.

The docstring of a program is its entry: the first line names the case; ``Reported:`` says where, ``Figure:`` names each
figure, its unit and whether less or more is better. A figure of unsnarl's own part of the program names the figure
``against`` which it stands. Pure but for reading these files.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
FIGURE = re.compile(
    r"^Figure: (?P<name>\w+), (?P<unit>[^,]+), (?P<better>less|more) is better"
    r"(?:, against (?P<against>\w+))?(?:: (?P<what>.+))?$"
)


class CaseError(ValueError):
    """A program's docstring lacks a part."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a case.

    Attributes:
        name: its name in the program's output.
        unit: its unit.
        less: whether less is better.
        what: what it is.
        against: the figure of the same program that it is compared with; empty if the program's starts are compared.
    """

    name: str
    unit: str
    less: bool
    what: str
    against: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One case. ``needs`` are the modules that it imports besides the standard library and unsnarl."""

    name: str
    title: str
    reported: str
    figures: tuple[Figure, ...]
    path: Path


def read(path: Path) -> Case:
    """Return the case of a program.

    Raises:
        CaseError: its docstring lacks a part.
    """
    lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
    reported = [line.removeprefix("Reported: ") for line in lines if line.startswith("Reported: ")]
    figures = [found for line in lines if (found := FIGURE.match(line))]
    if not lines or not reported or not figures:
        raise CaseError(f"{path.name}: its docstring needs a title, `Reported:` and `Figure:`")
    made = tuple(
        Figure(one["name"], one["unit"], one["better"] == "less", one["what"] or "", one["against"] or "")
        for one in figures
    )
    for one in made:
        if one.against and one.against not in {other.name for other in made}:
            raise CaseError(f"{path.name}: {one.name} is against {one.against!r}, which is no figure of this case")
    return Case(path.stem, lines[0].rstrip("."), reported[0], made, path)


def every() -> list[Case]:
    """Return all cases by name."""
    return [read(path) for path in sorted(PROGRAMS.glob("*.py")) if path.stem != "parts"]
