"""The launcher of a pack: a generated program next to the pack, which starts the command with it.

Invariant: a launcher's first lines carry ``MARK``, and only files that carry it are ever overwritten.
"""

from __future__ import annotations

import os
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .recorder import Program

MARK = "made by `unsnarl pack`"
_HERE = os.path.dirname(os.path.abspath(__file__))


_LONGEST_LINE = 127
"""Bytes of a #! line that every kernel takes (BINPRM_BUF_SIZE was 128 before Linux 5.1)."""


class LauncherError(Exception):
    """A launcher cannot be written: ``what`` prevents it, and a ``hint``."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint


def text(program: Program, pack: str) -> bytes:
    """Return the text of a program that runs the script or module with the pack. Raises LauncherError."""
    name = ascii(program.name)
    plainly = [program.python, *program.options, *(["-m"] if program.kind == "module" else []), program.name]
    if program.kind == "module":
        running = f"pack.run_module({pack!a}, globals())({name})"
    elif program.kind == "archive":
        running = f"pack.run_archive({pack!a}, {name}, globals())('__main__', False)"
    else:
        running = f"exec(pack.run({pack!a}, {name}, globals()))"
    lines = [
        f"# Starts {name} with its pack; {MARK}.",
        "import sys",
        "known = frozenset(sys.modules)",
        "from _frozen_importlib_external import spec_from_file_location",
        "class pack:  # finds the files of the package without listing its directory",
        f"    __path__ = [{_HERE!a}]",
        "    def find_spec(name, target=None, of=spec_from_file_location, directory=__path__[0]):",
        "        return of(name, f\"{directory}/{name.rpartition('.')[2]}.py\")",
        "sys.path_importer_cache[pack.__path__[0]] = pack",
        'sys.modules["_unsnarl_pack"] = type(sys)("_unsnarl_pack")',
        'sys.modules["_unsnarl_pack"].__path__ = pack.__path__',
        "try:",
        "    import _unsnarl_pack.start as pack",
        "except Exception as problem:  # unsnarl has been removed, or a part of it",
        "    import os",
        "    try:",
        '        said = f"warning: the pack is not used: unsnarl cannot be loaded: {problem}"',
        "        print(said, file=sys.stderr, flush=True)",
        "    except Exception:",
        "        pass",
        f"    os.execv({program.python!a}, [{', '.join(map(ascii, plainly))}, *sys.argv[1:]])",
        "with pack.Unseen():",
        f"    {running}",
    ]
    return _head(program.python, program.options) + "\n".join([*lines, ""]).encode("ascii")


def _head(python: str, options: list[str]) -> bytes:
    """Return the #! line, or lines for the shell where the kernel could not parse that line."""
    line = " ".join([python, *options])
    if not line.isprintable() or "\\" in line:  # Python could not parse the launcher, or would parse it differently
        raise LauncherError(f"no launcher can name the interpreter {python!r}", "install it where its path is plain")
    is_plain = not any(" " in word for word in [python, *options]) and len(options) <= 1
    if is_plain and len(os.fsencode(f"#!{line}")) <= _LONGEST_LINE:
        return f"#!{line}\n".encode()
    return f"#!/bin/sh\n'''exec' {shlex.join([python, *options])} \"$0\" \"$@\"\n' '''\n".encode()
