"""Refuses programs that ``unsnarl run --green`` certainly cannot serve, before they start.

The reasons are: gevent is not installed, or the program's own text imports a module that cannot be
used in green threads. Invariant: no part of the program runs.
"""

import os

from unsnarl.cli.failure import CommandError
from unsnarl.cli.program.arguments import CODE, FILE, RunRequest

REFUSED = 1
"""The exit status of a program that is not started."""


def check(request: RunRequest) -> None:
    """Refuse a program that green threads cannot serve.

    Raises:
        CommandError: gevent is missing, or the program cannot run this way.
    """
    import sys

    from unsnarl import green
    from unsnarl.green import refusals

    if not green.is_available():
        raise CommandError(
            f"--green needs gevent, which is not installed in {sys.prefix}",
            f"install it: `{sys.executable} -m pip install '{green.REQUIREMENT}'`",
            REFUSED,
        )
    for line, name in refusals.in_source(_text(request), _path(request)):
        raise CommandError(
            f"{_name(request)} cannot run in green threads: line {line} imports {name}, and {refusals.REASONS[name]}",
            refusals.HINT,
            REFUSED,
        )


def _name(request: RunRequest) -> str:
    return "the program" if request.kind == CODE else repr(request.target)


def _path(request: RunRequest) -> list[str]:
    """Return the program's module path, which starts with the program's own directory."""
    import sys

    try:
        own = os.path.dirname(os.path.abspath(request.target)) if request.kind == FILE else os.getcwd()
    except FileNotFoundError:
        return sys.path  # the current directory has been removed: the interpreter adds no entry either
    return [own, *sys.path]


def _text(request: RunRequest) -> str | bytes:
    """Return the program's text if it can be read without side effects, else an empty string."""
    if request.kind == CODE:
        return request.target
    if request.kind != FILE or not os.path.isfile(request.target):
        return ""
    try:
        with open(request.target, "rb") as stream:
            return stream.read()
    except OSError:
        return ""
