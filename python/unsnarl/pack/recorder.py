"""The recorder: runs a command, lists the modules it loads, and writes their code into a pack.

Invariant: a pack is written completely under a temporary name, then renamed.
"""

from __future__ import annotations

import importlib.machinery
import marshal
import os
import subprocess
import sys
import tempfile
import textwrap

from . import container, deferral, freshness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import BinaryIO

_HERE = os.path.dirname(os.path.abspath(__file__))
RUNNING = """
if kind == "module":
    import os, runpy
    if not sys.flags.safe_path:
        try:
            sys.path[0] = os.getcwd()
        except FileNotFoundError:
            del sys.path[0]  # the interpreter adds no entry either
    runpy._run_module_as_main(name)
elif kind == "archive":
    import runpy
    if sys.flags.safe_path:
        sys.path.insert(0, name)
    else:
        sys.path[0] = name
    sys.argv[0] = name
    runpy._run_module_as_main("__main__", False)
else:
    if not sys.flags.safe_path:
        paths = __import__("os").path  # a link is followed, as the interpreter does
        sys.path[0] = paths.dirname(paths.realpath(name))
        del paths
    import __main__
    __main__.__file__ = name
    with open(name, "rb") as file:
        code = compile(file.read(), name, "exec", dont_inherit=True)
    exec(code, __main__.__dict__)
"""
"""Runs the script, module or archive ``name``, by its ``kind``, as the interpreter would; the end of ``_WATCHED``."""

# The spy runs first in the recorded command and writes the notes when the command ends.
# Arguments: the file for the notes, a pack to start with or an empty text, the directory of this package, and the
# program. The notes begin with the name of an uncaught exception (or an empty word) and the -O level. Three words per
# module follow. Each word ends with a null byte, which no path can contain.
# A module that was requested and is not in sys.modules at the end has replaced itself there, or has failed. It is
# noted if the path contains it, but not if a finder in front of PathFinder finds it, refuses it, or raises.
# The spy has a namespace of its own: programs bind any name in __main__, and debuggers clear it.
_SPY = """
import atexit, posix, sys
class _Asked:
    wanted = {}
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        cls.wanted.setdefault(name, path)
    failure = ""
    def __enter__(self):
        pass
    def __exit__(self, kind, problem, trace, is_module=sys.argv[4] == "module"):
        if kind is not None and not issubclass(kind, SystemExit):
            type(self).failure = kind.__name__
        elif is_module and trace is not None:
            while trace.tb_next:
                trace = trace.tb_next
            if trace.tb_frame.f_code.co_name == "_run_module_as_main":  # it ended before it ran the module
                type(self).failure = "no such module"
sys.meta_path.insert(0, _Asked)
def _on_path(name, path):
    from importlib.machinery import PathFinder
    for finder in list(sys.meta_path):
        if finder is not _Asked:
            try:
                spec = finder.find_spec(name, path, None)
            except Exception:
                return None
            if spec is not None:
                return spec if finder is PathFinder else None
def _others(known):
    for name, path in list(_Asked.wanted.items()):
        spec = None if name in known else _on_path(name, path)
        if spec is not None and spec.has_location and str(spec.origin).startswith("/"):
            yield name, spec.origin
def _note(out=sys.argv[1], own=posix.getpid()):
    if posix.getpid() != own:
        return  # a forked child, which may end after the notes were read or deleted
    known = set()
    def say(*words):
        file.write("".join(f"{word}\\0" for word in words))
    with open(out, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        say(_Asked.failure, sys.flags.optimize)
        for name, module in list(sys.modules.items()):
            # Bypasses __getattr__: reading an attribute would load a late module.
            try:
                names = object.__getattribute__(module, "__dict__")
            except AttributeError:  # the entry is None (a forbidden import), or not a module
                continue
            spec = names.get("__spec__")
            path = names.get("__file__") or getattr(spec, "origin", None)
            name = getattr(spec, "name", name) if name == "__main__" else name
            if isinstance(path, str) and path.startswith("/"):
                say(name, path, type(module).__name__)
                if spec is None or getattr(spec, "name", None) == name:
                    known.add(name)
        for name, path in _others(known):
            say(name, path, "")
        say("end")
atexit.register(_note)
used, here, kind, name = sys.argv[2:6]
if used:
    pack = sys.modules["_unsnarl_pack"] = type(sys)("_unsnarl_pack")
    pack.__path__ = [here]
    import _unsnarl_pack.start
    _unsnarl_pack.start.install(used)
    del pack, _unsnarl_pack
del sys.argv[:5]
"""
_WATCHED = f"""
import sys
_spy = {{}}
exec({_SPY!r}, _spy)
kind, name = _spy["kind"], _spy["name"]
with _spy["_Asked"]():
{textwrap.indent(RUNNING, "    ")}
"""


class RecordError(Exception):
    """The command could not be recorded: ``what`` happened, and a ``hint``."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint


class Program:
    """The program to pack: ``kind`` is ``script``, ``module`` or ``archive``, ``name`` its path or dotted name."""

    def __init__(self, python: str, options: list[str], kind: str, name: str) -> None:
        self.python = python
        self.options = options
        self.kind = kind
        self.name = name


class Run:
    """The modules that a recorded run has loaded: ``paths`` by module name, and the names of those still ``late``.

    ``failure`` is the name of an uncaught exception, or empty.
    """

    def __init__(self, notes: str, status: int) -> None:
        self.status = status
        self.failure, level, *words, end, rest = notes.split("\0")
        if end != "end" or rest:
            raise ValueError("the notes are cut off")
        self.optimize = int(level)
        self.paths: dict[str, str] = {}
        self.late: set[str] = set()
        for name, path, kind in zip(words[::3], words[1::3], words[2::3], strict=True):
            self.paths[name] = path
            if kind == "LateModule":
                self.late.add(name)


class Recording:
    """All recorded runs of a command: the ``paths`` of the loaded modules, and the ``optimize`` level (-O).

    ``doubts`` are sentences about runs that may have gone differently than intended.
    """

    def __init__(self) -> None:
        self.paths: dict[str, str] = {}
        self.optimize = 0
        self.doubts: list[str] = []

    def add(self, program: Program, arguments: list[str], run: Run) -> None:
        """Add a run. Raises RecordError if the run failed."""
        said = " ".join([program.name, *arguments])
        if run.failure:
            raise RecordError(
                f"`{said}` failed ({run.failure}), so it shows not what the command loads",
                'give arguments that it can run with, as --with "ARGS"',
            )
        if run.status != 0:
            self.doubts.append(f"`{said}` ended with status {run.status}: does it load all that is needed?")
        self.paths |= run.paths
        self.optimize = run.optimize


def record(program: Program, runs: list[list[str]]) -> Recording:
    """Run the command once per list of arguments and return the modules it loads. Raises RecordError."""
    found = Recording()
    for arguments in runs:
        found.add(program, arguments, run(program, arguments, subprocess.DEVNULL, None))
    return found


def run(program: Program, arguments: list[str], out: int | BinaryIO, err: int | BinaryIO | None, pack: str = "") -> Run:
    """Run the command, with or without a pack, and return the modules it loads. Raises RecordError."""
    with tempfile.TemporaryDirectory(prefix="unsnarl-pack-") as scratch:
        spy, notes = os.path.join(scratch, "spy.py"), os.path.join(scratch, "notes")
        with open(spy, "w", encoding="utf-8") as file:
            file.write(_WATCHED)
        words = [spy, notes, pack, _HERE, program.kind, program.name, *arguments]
        argv = [program.python, *program.options, *words]
        status = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, check=False).returncode
        try:
            with open(notes, encoding="utf-8", errors="surrogateescape", newline="") as listed:
                return Run(listed.read(), status)
        except (OSError, ValueError):
            said = " ".join([program.name, *arguments])
            raise RecordError(
                f"`{said}` ended before it could be recorded", "give arguments that end normally"
            ) from None


def build(
    modules: dict[str, str],
    late: Collection[str] = (),
    *,
    by_directory: bool = False,
    folder: str = "",
    optimize: int = sys.flags.optimize,
) -> bytes:
    """Return a pack of these modules, compiled by this interpreter; those in ``late`` are loaded late.

    ``by_directory``: directories are checked in place of their files. ``folder``: the directory of the script, if the
    program is a script. ``optimize``: the -O level of the interpreter that will run the program.
    """
    directories = freshness.stamps(modules.values()) if by_directory else {}
    roots = freshness.roots(_folders(modules, folder))
    packed: dict[str, tuple[tuple[object, ...], bytes]] = {}
    fixed = deferral.fixed_names(modules, late)
    for name, path in modules.items():
        one = _module(name, path, late, fixed, optimize)
        if one is not None:
            packed[name] = one
    return container.write(packed, directories, roots, optimize=optimize)


def _folders(modules: dict[str, str], folder: str) -> set[str]:
    """Return the directories of ``sys.path`` in which modules were found, and the script's directory."""
    found = {folder} if folder else set[str]()
    for name, path in modules.items():
        if "." not in name:
            base = os.path.dirname(path)
            found.add(os.path.dirname(base) if os.path.basename(path).startswith("__init__.") else base)
    return found


def _module(
    name: str, path: str, late: Collection[str], fixed: Mapping[str, Collection[str]], optimize: int
) -> tuple[tuple[object, ...], bytes] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    stem = os.path.basename(path).partition(".")[0]
    is_package = stem == "__init__"
    called = os.path.basename(os.path.dirname(path)) if is_package else stem
    # A module whose name differs from its file's was not found by PathFinder: it is not packed.
    if called != name.rpartition(".")[2] or name == "__main__":
        return None
    if path.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
        return (is_package, path, found.st_mtime_ns, found.st_size, b"", container.EXTENSION), b""
    if not path.endswith(".py"):
        return None
    with open(path, "rb") as file:
        source = file.read()
    try:
        code = deferral.compiled(source, path, name if is_package else name.rpartition(".")[0], fixed, optimize)
    except (SyntaxError, ValueError):
        return None
    kind = container.LATE if name in late else container.CODE
    mark = container.digest(source)
    return (is_package, path, found.st_mtime_ns, found.st_size, mark, kind), marshal.dumps(code)


def store(data: bytes, path: str, *, mode: int = 0o444) -> None:
    """Write a file under a temporary name, then rename it. Raises OSError.

    Writing in place would kill the processes that have the file mapped.
    """
    folder, name = os.path.split(os.path.abspath(path))
    file, temporary = tempfile.mkstemp(prefix=f".{name}.", dir=folder)
    try:
        with open(file, "wb") as stream:
            stream.write(data)
            os.fchmod(stream.fileno(), mode & ~_mask())
        os.replace(temporary, path)
    except OSError as problem:
        os.unlink(temporary)
        raise OSError(problem.errno, problem.strerror, path) from None


def _mask() -> int:
    """Return the umask, extended so that only the owner may write new files."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask | 0o022


assert sys.version_info >= (3, 11)
