"""Stores results as data: one JSON file for each experiment and interpreter.

A file describes its experiment, so that it can be shown after the experiment has changed. After every
pair it is written again, under a temporary name first, so that an interrupted run keeps its results.

Invariants: results of another machine, kernel, interpreter or build, or of a case with other
arguments, are never mixed into a file; one command at a time writes to a directory.
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
    """Say why a results file cannot be used, with a hint."""

    what: str
    hint: str

    def __init__(self, what: str, hint: str) -> None:
        """Keep the reason and the hint apart."""
        super().__init__(what, hint)
        self.what, self.hint = what, hint


def file_name(experiment: str, machine: Mapping[str, Any]) -> str:
    """Return the name of an experiment's file for an interpreter."""
    python = machine["python"]
    return f"{experiment}-{python['implementation'].lower()}-{python['version']}.json"


def read(path: Path) -> dict[str, Any]:
    """Return the content of a file of results.

    Raises:
        StoreError: it cannot be read, or has another content.
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
    """Lock a results directory until the end of the block or of the process.

    Raises:
        StoreError: another process holds the lock.
    """
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StoreError(
                f"another `unsnarl lab run` is writing to {folder}",
                "wait until it ends, or name another directory: `--out DIR`",
            ) from None
        except OSError:  # a file system without locks
            pass
        yield
    finally:
        os.close(directory)


class Results:
    """The file of one experiment and one interpreter, with its earlier and its new runs."""

    def __init__(self, folder: Path, experiment: Experiment, machine: dict[str, Any]) -> None:
        """Read the existing file, if there is one, to continue it.

        Raises:
            StoreError: the file has other circumstances, or is no results file.
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
            self._continue(read(self.path))

    def _continue(self, kept: dict[str, Any]) -> None:
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
        """Every run, in the order of execution."""
        return list(self._content["runs"])

    def pairs_kept(self) -> dict[str, int]:
        """Return the number of stored pairs of each case."""
        kept: dict[str, int] = {}
        for run in self._content["runs"]:
            kept[run["case"]] = max(kept.get(run["case"], 0), run["pair"] + 1)
        return kept

    def note(self, absent: Mapping[str, str], cases: Collection[Case], command: str) -> None:
        """Store the missing peers, the cases that are measured, and the command.

        Entries about cases that are not selected this time remain.

        Raises:
            StoreError: the file has runs of a case of the same name with other arguments.
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
        """Add a run: its figures, or the reason why it has none.

        Args:
            case: the name of the case.
            variant: the name of the variant.
            pair: the number of the pair, from 0.
            outcome: the figures, or the reason why there are none.
            late_s: the time limit in seconds, if the run exceeded it.
            is_spared: the run was skipped, since an earlier one exceeded that limit.
        """
        key = "failed" if isinstance(outcome, str) else "figures"
        run: dict[str, Any] = {"case": case, "variant": variant, "pair": pair, key: outcome}
        if late_s is not None:
            run |= {"late_s": late_s, "is_spared": is_spared}
        self._content["runs"].append(run)

    def is_late(self, case: Case, variant: str) -> bool:
        """Tell whether a variant has exceeded a case's time limit at this size of the series or a smaller one."""
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
        """Write the file atomically.

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
    """Return the part of an experiment that a report needs as plain data."""
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
