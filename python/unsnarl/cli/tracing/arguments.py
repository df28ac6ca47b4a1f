"""Parses the command line of ``unsnarl trace``: its own options, those of ``unsnarl run``, a target.

Pure: a list of words in, a ``TraceRequest`` or a ``CommandError`` out.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from unsnarl.cli.failure import CommandError
from unsnarl.cli.program.arguments import RunRequest, parse_for

if TYPE_CHECKING:
    from unsnarl.cli.program.arguments import TakeOption

OUTPUT = "trace.html"
COMPARISON_OUTPUT = "comparison.html"
SIZE_MB_RANGE = (1, 4096)
SIZE_MB = 32
SECONDS_RANGE = (0.1, 3600.0)
SECONDS = 5.0
_HELP = "see `unsnarl trace --help`"
_OF_COMPARE = ("--compare", "--output", "--data")
"""The options that make sense with ``--compare``."""


@dataclass(slots=True)
class TraceRequest:
    """A parsed command line of ``unsnarl trace``.

    Attributes:
        run: the program, as for ``unsnarl run``; empty with ``--read``, ``--compare`` and ``--attach``.
        output: the path of the report.
        data: the path of the summary as JSON, or None.
        collapsed: the path of the collapsed stacks, or None.
        size_mb: MiB of records of the main process.
        scheduler: whether the program runs under the scheduler.
        syscalls: whether strace counts system calls.
        keep: whether the recordings are kept.
        read: recordings to report on instead of running a program, or None.
        compare: two recordings to compare instead, or None.
        attach: the process to record instead, or None.
        seconds: the length of that recording.
        wants_help: whether help was requested.
    """

    run: RunRequest = field(default_factory=RunRequest)
    output: Path = field(default_factory=lambda: Path(OUTPUT))
    data: Path | None = None
    collapsed: Path | None = None
    size_mb: int = SIZE_MB
    scheduler: bool = False
    syscalls: bool = False
    keep: bool = False
    read: Path | None = None
    compare: tuple[Path, Path] | None = None
    attach: int | None = None
    seconds: float = SECONDS
    wants_help: bool = False

    @property
    def json_output(self) -> Path:
        """Return the path of the Chrome trace, next to the report."""
        return self.output.parent / f"{self.output.stem}.json"


def parse(words: list[str]) -> TraceRequest:
    """Parse the words after ``unsnarl trace``.

    Raises:
        CommandError: the words are invalid; its status is 2.
    """
    request = TraceRequest()

    def take(name: str, attached: str | None, rest: list[str]) -> bool:
        return _take(request, name, attached, rest)

    if not _consume_leading(request, words):
        request.run = _parse_run(words, take)
        request.wants_help = request.run.wants_help
    _check_outputs(request)
    return request


def _check_outputs(request: TraceRequest) -> None:
    """Refuse two outputs with the same path, of which the second would replace the first."""
    if request.compare is not None:
        if request.data is not None and _absolute(request.data) == _absolute(request.output):
            raise CommandError(f"--data cannot be {str(request.data)!r}: the page is", "name another file")
        return
    if request.json_output == request.output:
        raise CommandError(
            f"the report cannot be called {request.output.name!r}: the trace next to it has that name",
            "give it a name that ends in .html",
        )
    taken = {_absolute(request.output): "the report", _absolute(request.json_output): "the trace next to the report"}
    for option, path in (("--data", request.data), ("--collapsed", request.collapsed)):
        if path is not None:
            if _absolute(path) in taken:
                raise CommandError(
                    f"{option} cannot be {str(path)!r}: {taken[_absolute(path)]} is", "name another file"
                )
            taken[_absolute(path)] = f"that of {option}"


def _absolute(path: Path) -> str:
    try:
        return os.path.abspath(path)
    except OSError:  # the current directory was removed
        return os.path.normpath(path)


def _consume_leading(request: TraceRequest, words: list[str]) -> bool:
    """Parse a command line without a program: ``--read``, ``--compare`` or ``--attach``, and options."""
    rest = list(reversed(words))
    trial = TraceRequest()
    given: list[str] = []
    while rest:
        name, mark, attached = rest.pop().partition("=")
        given.append(name)
        if not _take(trial, name, attached if mark else None, rest):
            _check_compared(trial, given)
            return False
    if trial.read is None and trial.attach is None and trial.compare is None:
        return False
    _check_compared(trial, given)
    if trial.compare is not None and "--output" not in given:
        trial.output = Path(COMPARISON_OUTPUT)
    for name in TraceRequest.__slots__:
        setattr(request, name, getattr(trial, name))
    return True


def _check_compared(trial: TraceRequest, given: list[str]) -> None:
    """Refuse what makes no sense with ``--compare``, if that is given."""
    foreign = [name for name in given if name not in _OF_COMPARE]
    if trial.compare is not None and foreign and foreign[0] not in ("-h", "--help"):
        raise CommandError(f"--compare takes two recordings and an output, not {foreign[0]!r}", _HELP)


def _parse_run(words: list[str], take: TakeOption) -> RunRequest:
    run = parse_for("trace", words, take)
    foreign = {
        "--slice": run.slice_ms is not None,
        "--batch-share": run.batch_share is not None,
        "--stats": run.stats != "no",
        "--metrics": bool(run.metrics),
        "--no-kernel-hints": not run.kernel_hints,
        "--pack": bool(run.pack),
    }
    name = next((name for name, is_given in foreign.items() if is_given), None)
    if name is not None:
        raise CommandError(f"option {name} belongs to `unsnarl run`, not to `unsnarl trace`", _HELP)
    return run


def _take(request: TraceRequest, name: str, attached: str | None, rest: list[str]) -> bool:
    """Parse one of the options of ``unsnarl trace``; return False for any other."""
    flags = {"--scheduler": "scheduler", "--syscalls": "syscalls", "--keep": "keep"}
    paths = {"--output": "output", "--data": "data", "--collapsed": "collapsed", "--read": "read"}
    if name in flags:
        if attached is not None:
            raise CommandError(f"option {name} takes no value, in `unsnarl trace`", _HELP)
        setattr(request, flags[name], True)
    elif name in paths:
        setattr(request, paths[name], Path(_value(name, attached, rest)))
    elif name == "--size":
        request.size_mb = int(_number(name, _value(name, attached, rest), *SIZE_MB_RANGE, "MiB"))
    elif name == "--seconds":
        request.seconds = _number(name, _value(name, attached, rest), *SECONDS_RANGE, "seconds")
    elif name in _OTHERS:
        setattr(request, name[2:], _OTHERS[name](name, attached, rest))
    else:
        return False
    return True


def _value(name: str, attached: str | None, rest: list[str]) -> str:
    value = attached if attached is not None else rest.pop() if rest else ""
    if not value:
        raise CommandError(f"option {name} lacks its value, in `unsnarl trace`", _HELP)
    return value


def _number(name: str, text: str, low: float, high: float, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise CommandError(f"{name} takes {unit} from {low:g} to {high:g}, not {text!r}", _HELP)
    return number


def _recordings(name: str, attached: str | None, rest: list[str]) -> tuple[Path, Path]:
    before = Path(_value(name, attached, rest))
    if not rest or not rest[-1]:
        raise CommandError("option --compare takes two recordings, in `unsnarl trace`", _HELP)
    return before, Path(rest.pop())


def _pid(name: str, attached: str | None, rest: list[str]) -> int:
    text = _value(name, attached, rest)
    if not text.isdecimal() or int(text) == 0:
        raise CommandError(f"--attach takes a process id, not {text!r}", "`ps -ef` shows them")
    return int(text)


_OTHERS = {"--compare": _recordings, "--attach": _pid}
"""The options with a form of their own."""
