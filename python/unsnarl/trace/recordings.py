"""Reads recordings: one file, or a directory with those of a program's processes.

Raises ``UnreadableTrace`` with what is the matter and a hint; a directory is read as
far as its files can be, and says which could not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from unsnarl import _native
from unsnarl.errors import HintedError
from unsnarl.trace import model
from unsnarl.trace.traced.recording import SUFFIX, UNTRACED_SUFFIX


class UnreadableTrace(HintedError):  # noqa: N818 -- said of the trace
    """Say why there is nothing to report on."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """A program's processes, the first one first.

    Attributes:
        processes: those that could be read.
        unreadable: name and reason of each file that could not.
        untraced: processes that were not recorded, for want of room.
    """

    processes: list[model.Process]
    unreadable: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    untraced: int = 0


def read(path: Path) -> Recordings:
    """Read a recording, or all of a directory.

    Raises:
        UnreadableTrace: there is none, or none that can be read.
    """
    if not os.path.isdir(path):
        return Recordings([_read_file(path)])
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise _unreadable(path, error) from None
    processes: list[model.Process] = []
    unreadable: list[tuple[str, str]] = []
    for name in names:
        if name.endswith(SUFFIX):
            try:
                processes.append(_read_file(path / name))
            except UnreadableTrace as error:
                unreadable.append((name, error.reason))
    if not processes:
        why = f": {unreadable[0][1]}" if unreadable else ""
        raise UnreadableTrace(
            f"there is no recording in {str(path)!r}{why}",
            "name a directory that `unsnarl trace --keep` left, or one of its files",
        )
    processes.sort(key=lambda process: process.started_ns)
    return Recordings(processes, unreadable, sum(name.endswith(UNTRACED_SUFFIX) for name in names))


def _read_file(path: Path) -> model.Process:
    try:
        return model.from_json(_native.trace_read(str(path)))
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise UnreadableTrace(
            f"cannot read {str(path)!r}: {error}", "a recording is a file that ends in .trace"
        ) from None


def _unreadable(path: Path, error: OSError) -> UnreadableTrace:
    # What comes from the native reader has a text alone, with Rust's number behind it.
    why = error.strerror or str(error).partition(" (os error")[0]
    return UnreadableTrace(f"cannot read {str(path)!r}: {why}", "check the path and its permissions")
