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
            if "Lazy" not in object.__getattribute__(module, "__class__").__name__:
                path = getattr(module, "__file__", None)
                if isinstance(path, str):
                    file.write(f"{name}\\t{path}\\n")
atexit.register(_note)
script = sys.argv[2]
del sys.argv[:2]
sys.path[0] = script.rpartition("/")[0]
import __main__
__main__.__file__ = script
with open(script, "rb") as file:
    code = compile(file.read(), script, "exec", dont_inherit=True)
exec(code, __main__.__dict__)
"""


class RecordError(Exception):
    """The command could not be recorded: ``what`` happened, and the ``hint``."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint


def record(python: str, options: list[str], script: str, runs: list[list[str]]) -> dict[str, str]:
    """Run the command once per list of arguments and return the modules it loads, with their files."""
    found: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="unsnarl-pack-") as scratch:
        spy = os.path.join(scratch, "spy.py")
        with open(spy, "w", encoding="utf-8") as file:
            file.write(_SPY)
        for arguments in runs:
            out = os.path.join(scratch, "out")
            argv = [python, *options, spy, out, script, *arguments]
            subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
            try:
                with open(out, encoding="utf-8", errors="surrogateescape") as listed:
                    found |= dict(line.rstrip("\n").split("\t", 1) for line in listed)
                os.unlink(out)
            except OSError:
                words = " ".join([script, *arguments])
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


def launcher(python: str, options: list[str], script: str, pack: str) -> str:
    """Return the text of a program that runs the script with the pack."""
    here = os.path.dirname(os.path.abspath(__file__))
    head = " ".join([f"#!{python}", *options])
    return (
        f"{head}\n# Starts {script} with its pack; made by `unsnarl pack`.\n"
        "import sys\n"
        'pack = type(sys)("_unsnarl_pack")\n'
        f"pack.__path__ = [{here!r}]\n"
        'sys.modules["_unsnarl_pack"] = pack\n'
        "import _unsnarl_pack.start as pack\n"
        f"exec(pack.run({pack!r}, {script!r}, globals()))\n"
    )


assert sys.version_info >= (3, 11)
