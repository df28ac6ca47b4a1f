"""Finds console scripts, and the interpreter that a script names.

A command runs under unsnarl only if it is a Python script of this environment, since the environment's
start-up installs the scheduler. A script names its interpreter in one of three forms:

    #!/venv/bin/python -sE          the kernel's, with at most one option word
    #!/usr/bin/env python3          through PATH
    #!/bin/sh                       pip's and uv's for paths too long for the kernel,
    '''exec' /venv/bin/python "$0" "$@"
    ' '''
"""

import os
import sys

_HEAD_BYTES = 8192
"""Enough for two lines, each with a path as long as Linux allows (PATH_MAX, 4096)."""

_RELOCATABLE_MARK = "$(dirname -- "
"""In uv's relocatable scripts, the shell finds the interpreter in the script's directory."""


class Interpreter:
    """The interpreter a script names: the path of the executable, and its option words."""

    __slots__ = ("flags", "is_looked_up", "path")

    def __init__(self, path: str, flags: list[str], *, is_looked_up: bool = False) -> None:
        """Keep the path as the script spells it, or as PATH currently resolves it."""
        self.path = path
        self.flags = flags
        self.is_looked_up = is_looked_up


def find(name: str) -> str | None:
    """Return the path of a command: this environment's scripts first, then PATH.

    A name with a slash is a path. None if there is no such executable.
    """
    if "/" in name:
        return name if _is_executable(name) else None
    import sysconfig

    return _find_in([sysconfig.get_path("scripts"), *os.get_exec_path()], name)


def interpreter_of(script: str) -> Interpreter | None:
    """Return the interpreter that a script names, or None if it is no Python script.

    Raises:
        OSError: the script cannot be read.
    """
    with open(script, "rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if not head.startswith(b"#!"):
        return None
    first, _, rest = os.fsdecode(head).partition("\n")
    named = _by_shell(rest, script) if first[2:].split() == ["/bin/sh"] else _by_kernel(first[2:])
    return named if named and _is_python_name(os.path.basename(named.path)) else None


def no_python(script: str, usual: str) -> tuple[str, str]:
    """Return in words what a script without an interpreter is, and a hint: ``usual``, unless it is an archive."""
    import zipfile

    if zipfile.is_zipfile(script):
        return f"{script} is an archive (zipapp) without a first line", f"start it as `python {script}`"
    return f"{script} is not a Python script", usual


def is_of_this_environment(path: str) -> bool:
    """Tell whether an interpreter is this one, started through this environment.

    All environments of one interpreter link to the same file, so the directory must be
    the same as well.
    """
    mine = sys.executable
    try:
        return os.path.samefile(path, mine) and os.path.samefile(os.path.dirname(path), os.path.dirname(mine))
    except OSError:
        return False


def _by_kernel(line: str) -> Interpreter | None:
    """Parse the words after ``#!``: the kernel passes everything after the path as one word."""
    words = line.strip().split(maxsplit=1)
    if not words:
        return None
    path, *option = words
    if os.path.basename(path) == "env":
        return _by_env(option)
    return Interpreter(path, option)


def _by_env(option: list[str]) -> Interpreter | None:
    """Resolve ``env python3`` or ``env -S python3 -u`` through PATH, as env does."""
    words = option[0].split() if option else []
    if words and words[0] in ("-S", "--split-string"):
        if any(sign in option[0] for sign in "\"'\\$#\t"):
            return None  # quoting in env's own syntax
        words = words[1:]
    if not words:
        return None
    path = _find_in(os.get_exec_path(), words[0])
    return Interpreter(path or words[0], words[1:], is_looked_up="/" not in words[0])


def _by_shell(rest: str, script: str) -> Interpreter | None:
    """Parse the second line of a script that is valid in both the shell and Python."""
    line = rest.partition("\n")[0]
    if not line.startswith("'''exec' "):
        return None
    if _RELOCATABLE_MARK in line:
        name = line.rpartition(' "$0"')[0].rpartition("/")[2].strip("'")
        return Interpreter(os.path.join(os.path.dirname(os.path.realpath(script)), name), [])
    import shlex

    try:
        words = shlex.split(line)
    except ValueError:
        return None
    end = words.index("$0") if "$0" in words else len(words)
    return Interpreter(words[1], words[2:end]) if end > 1 else None


def _find_in(directories: list[str], name: str) -> str | None:
    if "/" in name:
        return name
    for directory in directories:
        path = os.path.join(directory, name)
        if _is_executable(path):
            return path
    return None


def _is_executable(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _is_python_name(name: str) -> bool:
    """Accept ``python``, ``python3``, ``python3.13``, ``python3.13t`` and ``pypy3``."""
    return name.startswith(("python", "pypy"))
