"""Make a pack: run a command, note the modules it loads, put their code into one file.

Invariant: a pack is written whole, to a temporary name, and renamed.
"""

from __future__ import annotations

import importlib.machinery
import marshal
import os
import subprocess
import sys
import tempfile

from . import container

# What runs first in the recorded command; the list is written when it ends.
_SPY = """
import atexit, sys
def _note(out=sys.argv[1]):
    with open(out, "w", encoding="utf-8", errors="surrogateescape") as file:
        for name, module in list(sys.modules.items()):
            # Past __getattr__: a module still waiting to be loaded on first touch must not be touched.
            names = object.__getattribute__(module, "__dict__")
            spec = names.get("__spec__")
            path = names.get("__file__") or getattr(spec, "origin", None)
            name = getattr(spec, "name", name) if name == "__main__" else name
            if isinstance(path, str) and path.startswith("/"):
                file.write(f"{name}\\t{path}\\n")
atexit.register(_note)
kind, name = sys.argv[2:4]
del sys.argv[:3]
if kind == "module":
    import os, runpy
    if not sys.flags.safe_path:
        sys.path[0] = os.getcwd()
    runpy._run_module_as_main(name)
else:
    sys.path[0] = name.rpartition("/")[0]
    import __main__
    __main__.__file__ = name
    with open(name, "rb") as file:
        code = compile(file.read(), name, "exec", dont_inherit=True)
    exec(code, __main__.__dict__)
"""


class RecordError(Exception):
    """The command could not be recorded: ``what`` happened, and the ``hint``."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint


class Program:
    """What is packed: ``kind`` is ``script`` or ``module``, ``name`` its path or dotted name."""

    def __init__(self, python: str, options: list[str], kind: str, name: str) -> None:
        self.python = python
        self.options = options
        self.kind = kind
        self.name = name


def record(program: Program, runs: list[list[str]]) -> dict[str, str]:
    """Run the command once per list of arguments and return the modules it loads, with their files."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="unsnarl-pack-") as scratch:
        spy = os.path.join(scratch, "spy.py")
        with open(spy, "w", encoding="utf-8") as file:
            file.write(_SPY)
        for arguments in runs:
            out = os.path.join(scratch, "out")
            argv = [program.python, *program.options, spy, out, program.kind, program.name, *arguments]
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
            try:
                with open(out, encoding="utf-8", errors="surrogateescape") as listed:
                    found |= dict(line.rstrip("\n").split("\t", 1) for line in listed)
                os.unlink(out)
            except OSError:
                words = " ".join([program.name, *arguments])
                raise RecordError(
                    f"`{words}` ended before it could be recorded", "give arguments that end normally"
                ) from None
    return found


def build(modules: dict[str, str]) -> bytes:
    """Return a pack of these modules, compiled by this interpreter."""
    packed: dict[str, tuple[tuple[object, ...], bytes]] = {}
    for name, path in modules.items():
        one = _module(name, path)
        if one is not None:
            packed[name] = one
    return container.write(packed)


def _module(name: str, path: str) -> tuple[tuple[object, ...], bytes] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    stem = os.path.basename(path).partition(".")[0]
    # A module known by another name than its file's was not found by the path: leave it alone.
    if stem not in (name.rpartition(".")[2], "__init__") or name == "__main__":
        return None
    is_package = stem == "__init__"
    if path.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return (is_package, path, found.st_mtime_ns, found.st_size, "x"), b""
    if not path.endswith(".py"):
        return None
    with open(path, "rb") as file:
        source = file.read()
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return (is_package, path, found.st_mtime_ns, found.st_size, "c"), marshal.dumps(code)


def store(data: bytes, path: str) -> None:
    """Write a pack."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "wb") as file:
        file.write(data)
    os.replace(temporary, path)


def launcher(program: Program, pack: str) -> str:
    """Return the text of a program that runs the script or module with the pack."""
    here = os.path.dirname(os.path.abspath(__file__))
    head = " ".join([f"#!{program.python}", *program.options])
    words = f"({pack!r}, {program.name!r}, globals())"
    return (
        f"{head}\n# Starts {program.name} with its pack; made by `unsnarl pack`.\n"
        "import sys\n"
        'pack = type(sys)("_unsnarl_pack")\n'
        f"pack.__path__ = [{here!r}]\n"
        'sys.modules["_unsnarl_pack"] = pack\n'
        "import _unsnarl_pack.start as pack\n"
    ) + (f"pack.run_module{words}\n" if program.kind == "module" else f"exec(pack.run{words})\n")


assert sys.version_info >= (3, 11)
