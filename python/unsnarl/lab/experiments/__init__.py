"""The experiments, one file each, and the catalogue that imports them by name.

Invariant: an experiment is data, with at most one function, for a run that is more than
running a program.
"""

from __future__ import annotations

from importlib import import_module

from unsnarl.lab.experiment import Experiment

NAMES = (
    "imports",
    "futexes",
    "squares",
    "processes",
    "startup",
    "storm",
    "suite",
    "efficiency",
    "pairs",
    "convoy",
    "web",
    "micro",
)
"""Every experiment by the name of its module, in the order of a complete run."""


NAMED_ONLY = frozenset(("suite",))
"""Experiments that take too long to be part of a run that names none."""


def experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Raises:
        KeyError: there is no experiment of that name.
    """
    if name not in NAMES:
        raise KeyError(name)
    found: Experiment = import_module(f"{__name__}.{name}").EXPERIMENT
    return found
