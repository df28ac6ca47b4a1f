"""Reads recordings: one file, or a directory with a file for each process of a program.

Raises ``UnreadableTrace`` with a reason and a hint. In a directory, unreadable files are
skipped and listed in the result.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path

from unsnarl import _native
from unsnarl.errors import HintedError
from unsnarl.trace import loop_rounds, model, task_file
from unsnarl.trace.traced import tasks
from unsnarl.trace.traced.giving_way import ENTRY, FINDS
from unsnarl.trace.traced.recording import SUFFIX, UNTRACED_SUFFIX


class UnreadableTrace(HintedError):  # noqa: N818 -- said of the trace
    """Say why there is nothing to report on."""


@dataclass(frozen=True, slots=True)
class Recordings:
    """A program's processes, in the order of their start.

    Attributes:
        processes: the readable recordings.
        unreadable: name and reason of each unreadable file.
        untraced: processes that were not recorded because the directory was full.
    """

    processes: list[model.Process]
    unreadable: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    untraced: int = 0


def read(path: Path) -> Recordings:
    """Read a recording, or all of a directory.

    Raises:
        UnreadableTrace: there is no recording, or no readable one.
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
        process = model.from_json(_native.trace_read(str(path)))
    except OSError as error:
        raise _unreadable(path, error) from None
    except ValueError as error:
        raise UnreadableTrace(
            f"cannot read {str(path)!r}: {error}", "a recording is a file that ends in .trace"
        ) from None
    text = _text_of_tasks(path)
    if text is None:
        return process  # no loop was sampled
    rounds = loop_rounds.parse(text, process.threads, process.started_ns)
    giving, finds = (task_file.counted(text, process.threads, kind) for kind in (ENTRY, FINDS))
    timed, looks = task_file.timed(text, process.threads), task_file.looks(text, process.threads)
    rounds = replace(rounds, giving=giving, finds=finds, timed=timed, looks=looks)
    return replace(process, tasks=task_file.parse(text, process.threads), loop_rounds=rounds)


def _text_of_tasks(path: Path) -> str | None:
    """Return what the file next to a recording says; of a process that was killed as it replaced it, its new one."""
    for suffix in (tasks.SUFFIX, tasks.SUFFIX + tasks.NEW, tasks.SUFFIX):
        try:
            text = path.with_suffix(suffix).read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        if suffix == tasks.SUFFIX or text.endswith(f"\n{tasks.END}"):
            return text
    return None


def _unreadable(path: Path, error: OSError) -> UnreadableTrace:
    # An error of the native reader has only a text, which ends with Rust's error number.
    why = error.strerror or str(error).partition(" (os error")[0]
    return UnreadableTrace(f"cannot read {str(path)!r}: {why}", "check the path and its permissions")
