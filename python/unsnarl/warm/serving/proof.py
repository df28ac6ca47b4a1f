"""Compares the values of a server's imports with those of the one learning run that was made.

A value that differs is made of the process, of chance or of the time: each worker sets it again, if there is a recipe.
So a quick learning run needs no second one. What a server cannot show, another learning run has to: then nothing is
served, and the next start makes both.

Invariant: a server serves only with facts whose values were compared in two runs.
"""

from __future__ import annotations

import os

from .. import facts as facts_of
from ..importing import values
from ..renewals import CLOCKS, Recipe, Renewal

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any


class Proof:
    """The values that the learning run has found, and when this process has begun to import."""

    def __init__(self, stem: str, umask: int) -> None:
        self._stem = stem
        self._umask = umask
        self._before = values.read(stem + facts_of.VALUES)
        self._begun: dict[Recipe, Any] = {clock: clock.value() for clock in CLOCKS}

    def lack(self, facts: facts_of.Facts) -> str:
        """Compare; add a renewal for each value that differs. Return in words what has no recipe, or nothing."""
        for one in facts.renewals:
            if one.recipe in self._begun and not self._is_of_now(one):
                return f"{one.module}.{one.name} is no time of its import"
        known = {(one.module, one.name) for one in facts.renewals}
        after = values.table(facts.modules, known)
        numbers = values.numbers_of(self._before)
        if numbers:
            after |= values.of_process(numbers)
        differing = values.differing(self._before, after)
        differing = [row for row in differing if not (facts.asks_umask and self._is_mask(*row[1:3]))]
        for _, module, name, recipe in differing:
            if recipe is None:
                return values.differs(module, name)
        facts.renewals += [Renewal(module, name, recipe) for _, module, name, recipe in differing if recipe]
        return ""

    def _is_mask(self, module: str, name: str) -> bool:
        """Return whether a global holds the file mode mask, which is another one in a learning run."""
        return values.is_of_mask(self._before[module, name]) and values.of_global(module, name) == self._umask

    def _is_of_now(self, one: Renewal) -> bool:
        found: Any = values.of_global(one.module, one.name)
        begun = self._begun[one.recipe]
        return type(found) is type(begun) and begun <= found <= one.recipe.value()

    def keep(self, facts: facts_of.Facts) -> None:
        """Store that the values were compared, unless the command was learned again meanwhile."""
        facts.is_unproven = False
        latest = facts_of.load(self._stem + ".facts")
        if latest is not None and latest.is_unproven and latest.fingerprint == facts.fingerprint:
            latest.renewals, latest.is_unproven = facts.renewals, False
            facts_of.store(latest, self._stem)
        self.drop()

    def drop(self) -> None:
        """Remove the values of the learning run: facts that are unproven without them need another one."""
        try:
            os.unlink(self._stem + facts_of.VALUES)
        except OSError:
            pass  # another server has compared them
