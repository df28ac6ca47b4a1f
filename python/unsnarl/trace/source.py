"""The lines of the traced program's source, as its files have them when the report is made.

A name such as ``<string>`` or ``<stdin>`` is that of no file: the report's own process may have source under the same
name, which is never taken for the program's. Must never: raise.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re

OF_COMMAND = "<string>"
"""The file name that the interpreter gives to the program of ``-c``."""


def line(file: str, number: int) -> str:
    """Return a line, the first of which is number 1, with its end; an empty text if it cannot be read."""
    return "" if _is_no_file(file) else linecache.getline(file, number)


def lines(file: str) -> list[str]:
    """Return all lines of a file; none if it cannot be read."""
    return [] if _is_no_file(file) else linecache.getlines(file)


@functools.lru_cache(maxsize=64)
def tree(file: str) -> ast.Module:
    """Return the syntax tree of a file; an empty module if it cannot be read or has a syntax error."""
    try:
        return ast.parse("".join(lines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def line_of_command(command: list[str], number: int, function: str) -> str:
    """Return a line of the program that a command line gives after ``-c``; empty if it has no such function there.

    Code that is made of text, as the methods of a dataclass are, has the same file name.
    """
    text = _of_command(command)
    lines = text.splitlines()
    is_there = all(name in text for name in function.split(".") if not name.startswith("<"))
    return lines[number - 1] if is_there and 0 < number <= len(lines) else ""


def _of_command(command: list[str]) -> str:
    words = iter(command[1:])
    for word in words:
        if word.startswith("-") and word != "-" and not word.startswith("--"):
            options = re.match(r"-([^cWXm]*)(.?)(.*)", word, re.DOTALL)
            if options is None or options[2] == "m":
                return ""
            value = options[3] or (next(words, "") if options[2] else "")
            if options[2] == "c":
                return value
        elif word == "--check-hash-based-pycs":
            next(words, None)
        else:
            return ""  # a script, or the standard input
    return ""


def _is_no_file(file: str) -> bool:
    return file.startswith("<")
