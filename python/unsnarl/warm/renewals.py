"""Globals of imported modules whose value each worker computes again, and the recipe for each.

A module that keeps the time of its import, the process's number or a random text would keep the server's, and
all workers would share it. The learning run finds such globals, the facts file keeps them, each worker renews them.

| recipe | its text in a facts file | its value in a worker |
|---|---|---|
| one of :data:`CLOCKS` | ``time``, ``monotonic_ns``, … | that clock of :mod:`time`, read now |
| :data:`WORKING_DIRECTORY` | ``cwd`` | the caller's directory |
| :data:`PROCESS_ID` | ``getpid`` | the worker's number |
| ``Recipe(HEX, 12)`` | ``hex12`` | twelve random hexadecimal digits |
| :data:`UUID` | ``uuid4`` | the digits of a random UUID |
| :data:`TEMPORARY_DIRECTORY` | ``mkdtemp`` | the path of a new directory, see ``importing/temporary.py`` |

Invariant: :meth:`Recipe.parse` reads back every text that ``str`` of a recipe has written.
"""

from __future__ import annotations

import os
import time

from .dataclass import dataclass

HEX = "hex"
# Hexadecimal digits without a letter among them, by chance or because they are decimal: never stored in facts.
DECIMAL = "dec"


@dataclass(frozen=True)
class Recipe:
    """How a value is computed; ``digits`` is the number of characters of :data:`HEX` and :data:`DECIMAL`."""

    kind: str
    digits: int = 0

    def __str__(self) -> str:
        """Return the text of a facts file."""
        return f"{self.kind}{self.digits or ''}"

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """Read the text of a recipe. Raises ValueError if there is none of this name."""
        if text[:3] in (HEX, DECIMAL):
            return cls(text[:3], int(text[3:]))
        known = cls(text)
        if known not in (*CLOCKS, WORKING_DIRECTORY, PROCESS_ID, UUID, TEMPORARY_DIRECTORY):
            raise ValueError(f"no recipe is called {text!r}")
        return known

    @property
    def is_random(self) -> bool:
        """Whether two runs get different values without a clock or a process number being involved."""
        return self.kind in (HEX, UUID.kind)

    @property
    def needs_comparison(self) -> bool:
        """Whether a global of this recipe is only found by comparing two learning runs."""
        return self.is_random or self.kind == PROCESS_ID.kind

    def value(self) -> object:
        """Return the value of this moment in this process; not for :data:`TEMPORARY_DIRECTORY`."""
        if self.kind == WORKING_DIRECTORY.kind:
            return os.getcwd()
        if self.kind == PROCESS_ID.kind:
            return os.getpid()
        if self.kind == UUID.kind:
            # RFC 9562, 5.4: version and variant are fixed.
            number = bytearray(os.urandom(16))
            number[6], number[8] = number[6] & 0x0F | 0x40, number[8] & 0x3F | 0x80
            return number.hex()
        if self.kind == HEX:
            return os.urandom(self.digits).hex()[: self.digits]
        return getattr(time, self.kind)()


TIME = Recipe("time")
CLOCKS = (TIME, *map(Recipe, ("time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")))
WORKING_DIRECTORY = Recipe("cwd")
PROCESS_ID = Recipe("getpid")
UUID = Recipe("uuid4")
TEMPORARY_DIRECTORY = Recipe("mkdtemp")


@dataclass(frozen=True)
class Renewal:
    """A global, by its module and its name there, and the recipe for its value."""

    module: str
    name: str
    recipe: Recipe
