"""Selection of the modules that a command imports and never uses: these may be loaded late.

The runs that a pack is made from are repeated with a pack in which all candidates are late. A module that a run uses
is dropped from the candidates, and the rest is tried again. The selection is complete when a round of runs

- uses none of the candidates;
- omits no module whose body does anything but bind names (``quiet.py``);
- ends, prints and returns as without the pack.

Invariant: the returned selection has been run in exactly this form, or it is empty.

A candidate is a quiet module that

- is not a package, and not part of the interpreter's own machinery;
- takes no name from another module that may have a different value later;
- is nowhere imported inside ``try`` or ``with``, where the program expects a failure immediately.
"""

from __future__ import annotations

import ast
import os
import tempfile

from . import quiet, recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

ROUNDS = 6
"""Most repetitions of all runs; each drops the modules that the runs before it used."""
_MACHINERY = frozenset(
    [
        "__main__",
        "_unsnarl_pack",
        "abc",
        "atexit",
        "codecs",
        "copyreg",
        "encodings",
        "importlib",
        "linecache",
        "runpy",
        "site",
        "sitecustomize",
        "threading",
        "traceback",
        "types",
        "typing",
        "unsnarl",
        "usercustomize",
        "warnings",
        "weakref",
        "zipimport",
    ]
)


class Learned:
    """The modules to load ``late``; if there are none, ``why``."""

    def __init__(self, late: set[str], why: str = "") -> None:
        self.late = late
        self.why = why


class _Source:
    """Facts about a module, from its source."""

    def __init__(self, name: str, path: str) -> None:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
        self.is_package = os.path.basename(path) == "__init__.py"
        self.is_quiet = quiet.is_quiet(tree)
        self.imported = quiet.imported(tree, name, is_package=self.is_package)
        self.taken = quiet.taken(tree, name, is_package=self.is_package)
        self.fixed, self.changing = quiet.bound(tree)
        self.guarded = quiet.guarded(tree, name, is_package=self.is_package)


class _Outcome:
    """One run, and its output."""

    def __init__(self, program: recorder.Program, arguments: list[str], pack: str = "") -> None:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            self.run = recorder.run(program, arguments, out, err, pack)
            out.seek(0)
            err.seek(0)
            self.visible = (self.run.status, out.read(), err.read())


def learn(program: recorder.Program, runs: list[list[str]]) -> tuple[recorder.Recording, Learned]:
    """Return what these runs load, and which modules to load late. Raises RecordError."""
    plain = [_Outcome(program, arguments) for arguments in runs]
    recording = recorder.Recording()
    for arguments, one in zip(runs, plain, strict=True):
        recording.add(program, arguments, one.run)
    modules = recording.paths
    sources = _sources(modules)
    late = _candidates(sources, modules, _guarded_by(program))
    for _ in range(ROUNDS):
        if not late:
            return recording, Learned(late, "none of them can be loaded late and is not used")
        tried = _attempt(program, runs, recorder.build(modules, late, optimize=recording.optimize))
        kept = _kept(late, plain, tried, sources)
        if kept != late:
            late = kept
            continue
        differing = [
            words for words, before, now in zip(runs, plain, tried, strict=True) if before.visible != now.visible
        ]
        if differing:
            said = " ".join([os.path.basename(program.name), *differing[0]])
            return recording, Learned(set(), f"`{said}` did not print or return the same with modules loaded late")
        return recording, Learned(late)
    return recording, Learned(set(), f"no selection of them was right after {ROUNDS} rounds")


def _sources(modules: dict[str, str]) -> dict[str, _Source]:
    found: dict[str, _Source] = {}
    for name, path in modules.items():
        try:
            found[name] = _Source(name, path)
        except (OSError, SyntaxError, ValueError):
            continue  # an extension module, or a file that cannot be packed
    return found


def _guarded_by(program: recorder.Program) -> set[str]:
    """Return the modules that the script itself imports inside ``try`` or ``with``."""
    if program.kind == "module":
        return set()  # the program is one of the modules
    try:
        return _Source("__main__", program.name).guarded
    except (OSError, SyntaxError, ValueError):
        return set()


def _candidates(sources: dict[str, _Source], modules: Collection[str], guarded: set[str]) -> set[str]:
    guarded = guarded.union(*(source.guarded for source in sources.values()))
    return {
        name
        for name, source in sources.items()
        if source.is_quiet
        and not source.is_package
        and all(_is_fixed(base, one, sources, modules) for base, one in source.taken)
        and name not in guarded
        and name.partition(".")[0] not in _MACHINERY
    }


def _is_fixed(base: str, name: str, sources: dict[str, _Source], modules: Collection[str]) -> bool:
    """Return whether a name of a module has the same value at any time, as far as the source shows."""
    source = sources.get(base)
    if source is None or name in source.fixed:
        return True  # modules not written in Python have functions, types and constants
    return name not in source.changing and f"{base}.{name}" in modules


def _attempt(program: recorder.Program, runs: list[list[str]], data: bytes) -> list[_Outcome]:
    with tempfile.TemporaryDirectory(prefix="unsnarl-pack-") as scratch:
        pack = os.path.join(scratch, "trial.pack")
        recorder.store(data, pack)
        return [_Outcome(program, arguments, pack) for arguments in runs]


def _kept(late: set[str], plain: list[_Outcome], tried: list[_Outcome], sources: dict[str, _Source]) -> set[str]:
    """Return the modules unused in all runs, without those whose deferral omitted a module that is not quiet."""
    kept = set(late)
    missing: set[str] = set()
    for before, now in zip(plain, tried, strict=True):
        kept -= now.run.paths.keys() - now.run.late
        missing |= before.run.paths.keys() - now.run.paths.keys()
    loud = {name for name in missing if name not in sources or not sources[name].is_quiet}
    return {name for name in kept if not _reached(name, sources) & loud}


def _reached(name: str, sources: dict[str, _Source]) -> set[str]:
    """Return the modules that a module's body imports, directly or not."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        source = sources.get(waiting.pop())
        new = source.imported - reached if source else set[str]()
        reached |= new
        waiting += new
    return reached
