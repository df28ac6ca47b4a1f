"""What an experiment is: data that say what is run, in which variants, and what is read off.

Invariant: no behaviour but the measurement itself, which an experiment may bring as
a function; everything else of it can be listed, and is kept with its results.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from unsnarl.lab.running.process import Run

Figures = dict[str, Any]
"""What a run yields: values by the names of figures."""


class Variant(NamedTuple):
    """One way to run a program."""

    name: str
    title: str
    """What it is called in tables."""
    launcher: str = "plain"
    """One of ``LAUNCHERS``."""
    words: tuple[str, ...] = ()
    """What the program is told, after its own arguments; for a launcher of unsnarl see ``options``."""
    options: tuple[str, ...] = ()
    """Options of ``unsnarl run``."""
    needs: tuple[str, ...] = ()
    """What must be there: names of ``presence.CHECKS``."""
    interpreter: str = "python"
    """The measured interpreter, or one of ``presence.OTHER_INTERPRETERS``."""


LAUNCHERS = ("plain", "run", "green", "warm", "packed")
"""``python PROGRAM``; ``unsnarl run PROGRAM``; the same with --green; a command through
``unsnarl warm run``; a command from its pack."""


class Confinement(NamedTuple):
    """Where the kernel may run a process, and by which policy."""

    cores: int | None = None
    """How many cores, from the first one allowed; None for all."""
    is_round_robin: bool = False
    """Whether by SCHED_RR, which needs a privilege."""

    def words(self) -> str:
        """Return it in words."""
        cores = "all cores" if self.cores is None else f"{self.cores} core{'s' if self.cores != 1 else ''}"
        return f"{cores}, SCHED_RR" if self.is_round_robin else cores


ANYWHERE = Confinement()
ONE_CORE = Confinement(cores=1)
ROUND_ROBIN = Confinement(is_round_robin=True)
ONE_CORE_ROUND_ROBIN = Confinement(cores=1, is_round_robin=True)


LIMIT_S = 120.0


class Case(NamedTuple):
    """One thing to measure: arguments of the program, and where it runs."""

    name: str
    arguments: tuple[str, ...] = ()
    series: str = ""
    """Cases of one series differ in their size alone; a growth exponent is fitted to them."""
    size: int | None = None
    confinement: Confinement = ANYWHERE
    variants: tuple[str, ...] | None = None
    """The variants that make sense here; None for all of the experiment."""
    expected_s: float = 1.0
    """About how long a run takes, for the time that is left."""
    limit_s: float = LIMIT_S
    """Seconds after which a run is ended; its variant is not tried again at this size of its series or a larger one."""
    command: str = ""
    """The console script that is started, if it is one; it must be there."""
    is_traced: bool = False
    """Whether system calls are counted, by strace; such a run's times are not kept."""

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
        """Return one case of the series that a program makes with its sizes in one confinement."""
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
    """The documents it repeats, by subject."""
    title: str
    question: str
    program: str
    """A file in ``programs``; empty where there is none."""
    figures: tuple[Figure, ...]
    """The first of them is the main one: the plots' and the progress line's."""
    variants: tuple[Variant, ...]
    """The first of them is what the others are compared with."""
    cases: tuple[Case, ...]
    quick: tuple[Case, ...]
    pairs: int = 5
    quick_pairs: int = 1
    measure: Callable[[Run], Figures] | None = None
    """How a run is carried out; None for: run the program, read the figures it prints."""
    reading: str = ""
    """What to know when reading the results."""

    def variant(self, name: str) -> Variant:
        """Return a variant by its name."""
        return next(variant for variant in self.variants if variant.name == name)

    def variants_of(self, case: Case) -> tuple[Variant, ...]:
        """Return the variants that a case is measured in."""
        return tuple(v for v in self.variants if case.variants is None or v.name in case.variants)
