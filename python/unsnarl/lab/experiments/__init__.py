"""The experiments, one file each; the catalogue imports them by name.

Invariant: a file here holds data, and at most the one function that carries out a
run which is more than running a program.
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
    "efficiency",
    "pairs",
    "convoy",
    "web",
    "micro",
)
"""Every experiment, which is the name of its module, in the order of a whole run."""


def experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Raises:
        KeyError: there is none of that name.
    """
    if name not in NAMES:
        raise KeyError(name)
    found: Experiment = import_module(f"{__name__}.{name}").EXPERIMENT
    return found
