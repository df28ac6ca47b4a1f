"""Results as data: one JSON file for each experiment and interpreter.

A file describes its experiment, so that it can be shown when the experiment has
changed since. It is written anew after every pair, to a temporary name first:
whoever interrupts a run keeps what it has.

Invariant: results of another machine, interpreter or scheduler are never mixed in.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from unsnarl.errors import UnsnarlError
from unsnarl.lab.experiment import Case, Experiment
from unsnarl.lab.process import Figures

FORMAT = "unsnarl-lab-1"
SAME = ("python", "scheduler", "cpu", "cores")
"""What of the machine must be the same for runs to be compared."""


class StoreError(UnsnarlError):
    """A file of results that cannot be used, with what to do about it."""

    what: str
    hint: str

    def __init__(self, what: str, hint: str) -> None:
        """Keep both apart."""
        super().__init__(what, hint)
        self.what, self.hint = what, hint


def file_name(experiment: str, machine: Mapping[str, Any]) -> str:
    """Return the name of an experiment's file for an interpreter."""
    python = machine["python"]
    return f"{experiment}-{python['implementation'].lower()}-{python['version']}.json"


def read(path: Path) -> dict[str, Any]:
    """Return the content of a file of results.

    Raises:
        StoreError: it cannot be read, or is something else.
    """
    try:
        loaded: Any = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}", "check its permissions") from None
    except ValueError:
        raise StoreError(f"{path} is no JSON", "remove it, or name another directory") from None
    content = cast("dict[str, Any]", loaded) if isinstance(loaded, dict) else {}
    if content.get("format") != FORMAT:
        raise StoreError(f"{path} holds no results of `unsnarl lab`", "remove it, or name another directory")
    wanted = {"experiment": dict, "machine": dict, "absent": dict, "runs": list}
    if any(not isinstance(content.get(name), kind) for name, kind in wanted.items()):
        raise StoreError(f"{path} is damaged: a part of it is missing", "remove it, and measure again")
    return content


class Results:
    """The file of one experiment and one interpreter, old runs and new ones."""

    def __init__(self, folder: Path, experiment: Experiment, machine: dict[str, Any]) -> None:
        """Take up what is kept already.

        Raises:
            StoreError: what is kept is of other circumstances, or no results at all.
        """
        self.path = folder / file_name(experiment.name, machine)
        self._content: dict[str, Any] = {
            "format": FORMAT,
            "experiment": describe(experiment),
            "machine": machine,
            "absent": {},
            "commands": [],
            "runs": [],
        }
        if self.path.exists():
            self._take_up(read(self.path))

    def _take_up(self, kept: dict[str, Any]) -> None:
        mine = self._content["machine"]
        other = next((name for name in SAME if kept["machine"].get(name) != mine[name]), None)
        if other is not None:
            raise StoreError(
                f"{self.path} holds results of another {other}: runs of both cannot be compared",
                "keep these in another directory: `--out DIR`",
            )
        cases = {case["name"]: case for case in kept["experiment"]["cases"]}
        new = {case["name"]: case for case in self._content["experiment"]["cases"]}
        self._content["experiment"]["cases"] = list((cases | new).values())
        self._content["runs"] = kept["runs"]
        self._content["commands"] = kept.get("commands", [])

    def pairs_kept(self) -> dict[str, int]:
        """Return how many pairs of each case there are."""
        kept: dict[str, int] = {}
        for run in self._content["runs"]:
            kept[run["case"]] = max(kept.get(run["case"], 0), run["pair"] + 1)
        return kept

    def note(self, absent: Mapping[str, str], cases: Iterable[Case], command: str) -> None:
        """Note what is not there, which cases are measured, and the command that does it."""
        self._content["absent"] = dict(absent)
        known = {case["name"]: case for case in self._content["experiment"]["cases"]}
        known |= {case.name: described(case) for case in cases}
        self._content["experiment"]["cases"] = list(known.values())
        if command not in self._content["commands"]:
            self._content["commands"].append(command)

    def add(self, case: str, variant: str, pair: int, outcome: Figures | str) -> None:
        """Add a run: its figures, or why it has none."""
        key = "failed" if isinstance(outcome, str) else "figures"
        self._content["runs"].append({"case": case, "variant": variant, "pair": pair, key: outcome})

    def write(self) -> None:
        """Write the file, all of it or nothing.

        Raises:
            StoreError: it cannot be written.
        """
        temporary = self.path.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps(self._content, indent=1) + "\n", encoding="utf-8")
            os.replace(temporary, self.path)
        except OSError as error:
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}", "name another directory: `--out DIR`"
            ) from None


def described(case: Case) -> dict[str, Any]:
    """Return a case as plain data."""
    return {
        "name": case.name,
        "series": case.series,
        "size": case.size,
        "confinement": case.confinement.words(),
        "is_traced": case.is_traced,
    }


def describe(experiment: Experiment) -> dict[str, Any]:
    """Return an experiment as plain data: what a report needs to know of it."""
    return {
        "name": experiment.name,
        "source": experiment.source,
        "title": experiment.title,
        "question": experiment.question,
        "reading": experiment.reading,
        "figures": [figure._asdict() for figure in experiment.figures],
        "variants": [{"name": variant.name, "title": variant.title} for variant in experiment.variants],
        "cases": [],
    }
