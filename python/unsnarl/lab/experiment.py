"""An experiment as data: its program, its variants, its cases and its figures.

Invariant: the only behaviour is an optional function that carries out a run; everything else can be
listed, and is stored with the results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from unsnarl.lab.running.process import Run

Figures = dict[str, Any]
"""The result of a run: values by the names of the figures."""


class Variant(NamedTuple):
    """One way to run a program."""

    name: str
    title: str
    """The name in tables."""
    launcher: str = "plain"
    """One of ``LAUNCHERS``."""
    words: tuple[str, ...] = ()
    """Arguments appended to the program's own; for options of a launcher see ``options``."""
    options: tuple[str, ...] = ()
    """Options of ``unsnarl run``."""
    needs: tuple[str, ...] = ()
    """Requirements: names of ``presence.CHECKS``."""
    interpreter: str = "python"
    """The measured interpreter, or one of ``presence.OTHER_INTERPRETERS``."""


LAUNCHERS = ("plain", "run", "green", "warm", "packed")
"""``python PROGRAM``; ``unsnarl run PROGRAM``; the same with --green; a command through
``unsnarl warm run``; a command from its pack."""


class Confinement(NamedTuple):
    """The cores on which the kernel may run a process, and the scheduling policy."""

    cores: int | None = None
    """The number of cores, from the first allowed one; None for all."""
    is_round_robin: bool = False
    """Whether the policy is SCHED_RR, which needs a privilege."""

    def words(self) -> str:
        """Return the confinement in words."""
        cores = "all cores" if self.cores is None else f"{self.cores} core{'s' if self.cores != 1 else ''}"
        return f"{cores}, SCHED_RR" if self.is_round_robin else cores


ANYWHERE = Confinement()
ONE_CORE = Confinement(cores=1)
ROUND_ROBIN = Confinement(is_round_robin=True)
ONE_CORE_ROUND_ROBIN = Confinement(cores=1, is_round_robin=True)


LIMIT_S = 120.0


class Case(NamedTuple):
    """One case of an experiment: the arguments of the program, and its confinement."""

    name: str
    arguments: tuple[str, ...] = ()
    series: str = ""
    """Cases of one series differ only in their size; a growth exponent is fitted to them."""
    size: int | None = None
    confinement: Confinement = ANYWHERE
    variants: tuple[str, ...] | None = None
    """The variants that are measured in this case; None for all of the experiment."""
    expected_s: float = 1.0
    """The approximate duration of a run, for the estimate of the remaining time."""
    limit_s: float = LIMIT_S
    """Seconds after which a run is ended; the variant is then skipped at this size of the series and at larger ones."""
    command: str = ""
    """The console script that is started, which must be installed; empty for other programs."""
    is_traced: bool = False
    """Whether strace counts the system calls; the times of such a run are not stored."""

    @classmethod
    def of_size(
        cls,
        program: str,
        size: int,
        confinement: Confinement,
        expected_s: float,
        variants: tuple[str, ...] | None = None,
        limit_s: float = LIMIT_S,
    ) -> Case:
        """Return the case of one size in the series of a program and a confinement."""
        series = f"{program}, {confinement.words()}"
        return cls(
            name=f"{series}, n = {size}",
            arguments=(program, str(size)),
            series=series,
            size=size,
            confinement=confinement,
            variants=variants,
            expected_s=expected_s,
            limit_s=limit_s,
        )


class Figure(NamedTuple):
    """One number that a run yields."""

    name: str
    title: str
    unit: str = ""
    is_better_higher: bool = False


class Experiment(NamedTuple):
    """Everything about one experiment."""

    name: str
    source: str
    """The documents whose experiment is repeated, by subject."""
    title: str
    question: str
    program: str
    """A file in ``programs``, or empty."""
    figures: tuple[Figure, ...]
    """The first one is the main figure, for plots and the progress line."""
    variants: tuple[Variant, ...]
    """The others are compared with the first one."""
    cases: tuple[Case, ...]
    quick: tuple[Case, ...]
    pairs: int = 5
    quick_pairs: int = 1
    measure: Callable[[Run], Figures] | None = None
    """Carries out a run; None to run the program and parse the figures that it prints."""
    reading: str = ""
    """Notes for readers of the results."""

    def variant(self, name: str) -> Variant:
        """Return a variant by its name."""
        return next(variant for variant in self.variants if variant.name == name)

    def variants_of(self, case: Case) -> tuple[Variant, ...]:
        """Return the variants that a case is measured in."""
        return tuple(v for v in self.variants if case.variants is None or v.name in case.variants)
