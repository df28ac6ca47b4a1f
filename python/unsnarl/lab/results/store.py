"""Results as data: one JSON file for each experiment and interpreter.

A file describes its experiment, so that it can be shown when the experiment has
changed since. It is written anew after every pair, to a temporary name first:
whoever interrupts a run keeps what it has.

Invariants: results of another machine, kernel, interpreter or build, or of a case with
other arguments, are never mixed in; one command at a time writes to a directory.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Collection, Generator, Mapping
from pathlib import Path
from typing import Any, cast

from unsnarl.errors import UnsnarlError
from unsnarl.lab import machine as machines
from unsnarl.lab.experiment import Case, Experiment, Figures
from unsnarl.lab.results import shape

FORMAT = "unsnarl-lab-1"


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
    misfit = shape.misfit(content, shape.RESULTS)
    if misfit is not None:
        raise StoreError(f"{path} is damaged: {misfit}", "remove it, and measure again")
    return content


@contextlib.contextmanager
def held(folder: Path) -> Generator[None]:
    """Keep a directory of results to ourselves, until the end of the block or of the process.

    Raises:
        StoreError: another process has it.
    """
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"another `unsnarl lab run` is writing to {folder}",
                "wait for its end, or name another directory: `--out DIR`",
            ) from None
        except OSError:  # a file system that knows no locks
            pass
        yield
    finally:
        os.close(directory)


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
        others = machines.differences([kept["machine"], mine])
        if others:
            raise StoreError(
                f"{self.path} holds results of another {others[0]}: runs of both cannot be compared",
                "keep these in another directory: `--out DIR`",
            )
        mine["versions"] = kept["machine"].get("versions", {}) | mine["versions"]
        cases = {case["name"]: case for case in kept["experiment"]["cases"]}
        new = {case["name"]: case for case in self._content["experiment"]["cases"]}
        self._content["experiment"]["cases"] = list((cases | new).values())
        self._content["runs"] = kept["runs"]
        self._content["commands"] = kept.get("commands", [])
        self._content["absent"] = kept["absent"]

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Every run, in the order in which they were carried out."""
        return list(self._content["runs"])

    def pairs_kept(self) -> dict[str, int]:
        """Return how many pairs of each case there are."""
        kept: dict[str, int] = {}
        for run in self._content["runs"]:
            kept[run["case"]] = max(kept.get(run["case"], 0), run["pair"] + 1)
        return kept

    def note(self, absent: Mapping[str, str], cases: Collection[Case], command: str) -> None:
        """Note what is not there, which cases are measured, and the command that does it.

        What was not there for cases that are not asked for this time stays noted.

        Raises:
            StoreError: there are runs of a case of the same name with other arguments.
        """
        asked = {variant["name"] for variant in self._content["experiment"]["variants"]}
        asked.update(case.name for case in cases)
        before = {name: reason for name, reason in self._content["absent"].items() if name not in asked}
        self._content["absent"] = before | dict(absent)
        known = {case["name"]: case for case in self._content["experiment"]["cases"]}
        new = {case.name: described(case) for case in cases}
        has_runs = {run["case"] for run in self._content["runs"]}
        for name in new.keys() & known.keys() & has_runs:
            if known[name].get("arguments") != new[name]["arguments"]:
                raise StoreError(
                    f"{self.path} holds runs of {name!r} with other arguments, as those of `--quick` are",
                    "keep these in another directory: `--out DIR`",
                )
        known |= new
        self._content["experiment"]["cases"] = list(known.values())
        if command not in self._content["commands"]:
            self._content["commands"].append(command)

    def add(
        self,
        case: str,
        variant: str,
        pair: int,
        outcome: Figures | str,
        *,
        late_s: float | None = None,
        is_spared: bool = False,
    ) -> None:
        """Add a run: its figures, or why it has none.

        Args:
            case: name of what was measured.
            variant: name of the way in which.
            pair: in which turn, from 0.
            outcome: the figures, or why there are none.
            late_s: seconds within which it did not end.
            is_spared: it was not carried out, since it is known not to end in that time.
        """
        key = "failed" if isinstance(outcome, str) else "figures"
        run: dict[str, Any] = {"case": case, "variant": variant, "pair": pair, key: outcome}
        if late_s is not None:
            run |= {"late_s": late_s, "is_spared": is_spared}
        self._content["runs"].append(run)

    def is_late(self, case: Case, variant: str) -> bool:
        """Tell whether a variant has not ended within a case's time, at its size of the series or a smaller one."""
        known = {one["name"]: one for one in self._content["experiment"]["cases"]}
        for run in self._content["runs"]:
            if run["variant"] != variant or run.get("late_s", 0.0) < case.limit_s:
                continue
            other = known.get(run["case"], {})
            is_smaller = bool(case.series) and other.get("series") == case.series and other["size"] <= case.size
            if run["case"] == case.name or is_smaller:
                return True
        return False

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
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise StoreError(
                f"{self.path} cannot be written: {error.strerror}", "name another directory: `--out DIR`"
            ) from None


def described(case: Case) -> dict[str, Any]:
    """Return a case as plain data."""
    return {
        "name": case.name,
        "arguments": list(case.arguments),
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
