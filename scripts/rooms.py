"""Checks the walls between folders: which room of a house may import which, and names of modules in strings.

A *house* is a folder whose subfolders are *rooms*; files that lie in the folder itself are the room ``""``. To add
a house, add an entry to :data:`HOUSES`; nothing else names one. Python files are parsed; of Rust files, ``use``
trees and paths that begin with ``crate``, ``super`` or ``self`` are read.

Not seen: what a file reaches through a name that another room re-exports, and modules imported by a computed name.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

Parts = tuple[str, ...]


@dataclass(frozen=True)
class House:
    """A folder of rooms.

    ``arrows`` has for each room the rooms that it may import, besides itself. ``outside`` are the rooms that may
    import the rest of the package or crate; None for all of them.
    """

    folder: str
    arrows: dict[str, tuple[str, ...]]
    outside: tuple[str, ...] | None = None

    def room_of(self, inside: Parts) -> str:
        """Return the room of a module, or of a name in one, by its path from the house."""
        return inside[0] if inside and inside[0] in self.arrows else ""


HOUSES = (
    House(
        "python/unsnarl/warm",
        {
            "": (),
            "importing": ("",),
            "learning": ("importing", ""),
            "worker": ("importing", ""),
            "serving": ("worker", "importing", ""),
            # The learning run is another process: it is started by name.
            "managing": ("serving", "worker", "importing", ""),
        },
        outside=("managing",),
    ),
    House(
        "crates/native/src/sync",
        {
            "calls": (),
            "who": (),
            "wait": ("calls", "who"),
            "permit": ("wait", "who", "calls"),
            "condition": ("permit", "wait", "who", "calls"),
            "queue": ("condition", "permit", "wait", "calls"),
            "": ("queue", "condition", "permit", "wait", "who", "calls"),
        },
        outside=(),
    ),
    House(
        "crates/hook/src",
        {
            "clock": (),
            "error": (),
            "processors": (),
            "futex": ("clock",),
            "elf": ("error",),
            "thread": ("elf", "futex", "clock", "processors", "error"),
            "record": ("thread", "elf", "clock", "error"),
            "gil": ("record", "thread", "elf", "futex", "clock", "processors", "error"),
            "spawn": ("record", "thread", "elf"),
            "hooked": ("gil", "record", "spawn", "elf"),
            "install": ("hooked", "gil", "record", "spawn", "thread", "elf", "clock", "processors", "error"),
            "": ("install", "hooked", "gil", "record", "spawn", "thread", "elf", "clock", "processors", "error"),
        },
    ),
    House(
        "crates/ipc/src",
        {
            "shim": (),
            "kernel": ("shim",),
            "header": ("shim", "kernel"),
            "wake": ("shim", "kernel"),
            "ownership": ("wake", "header", "shim", "kernel"),
            "queue": ("ownership", "wake", "header", "shim", "kernel"),
            "primitive": ("ownership", "wake", "header", "shim", "kernel"),
            "": ("primitive", "queue", "ownership", "wake", "header", "shim", "kernel"),
        },
    ),
    House(
        "crates/native/src/ipc",
        {
            "threads": (),
            "account": (),
            "wait": (),
            "segment": ("wait", "account"),
            "methods": ("segment", "wait"),
            "locks": ("methods", "segment", "wait", "account", "threads"),
            "": ("locks", "methods", "segment", "wait", "account", "threads"),
        },
    ),
    House(
        "crates/client/src",
        {
            "syscall": (),
            "target": ("syscall",),
            "job": ("syscall",),
            "server": ("target", "job", "syscall"),
            "call": ("job", "target", "syscall"),
            "run": ("syscall",),
            "": ("run", "call", "server", "job", "target", "syscall"),
        },
    ),
)

# Where the modules and crates of a path begin.
_SOURCE = re.compile(r"(?P<base>python|crates/[^/]+/src)/(?P<inner>.+)\.(?:pyi?|rs)")
_NAMED = re.compile(r'"((?:unsnarl|_unsnarl_(?:warm|pack))(?:\.[a-z_]+)+)"')
# In a command's own interpreter these packages are loaded under other names.
_OTHER_NAMES = {"_unsnarl_warm": "unsnarl.warm", "_unsnarl_pack": "unsnarl.pack"}


def complaints(files: Iterable[Path], root: Path, houses: Iterable[House] = HOUSES) -> Iterator[str]:
    """Yield ``file: what`` for each import that goes through a wall, and each circle in a table of arrows."""
    sources = [file for file in files if file.suffix in (".py", ".rs")]
    for house in houses:
        if circle := _circle(house):
            yield f"{house.folder}: the rooms {', '.join(circle)} may import each other in a circle"
        for file in sources:
            if file.is_relative_to(house.folder):
                yield from _through_walls(house, file, (root / file).read_text(encoding="utf-8"))


def misnamed(files: Iterable[Path], root: Path) -> Iterator[str]:
    """Yield ``file:line: what`` for each string that is a dotted name in unsnarl and leads to no module."""
    for file in files:
        if file.suffix in (".py", ".rs") and file.parts[0] in ("python", "crates"):
            for number, line in enumerate((root / file).read_text(encoding="utf-8").splitlines(), start=1):
                for name in _NAMED.findall(line):
                    if not _is_known(root / "python", name):
                        yield f"{file}:{number}: there is no module {name}"


def _is_known(base: Path, name: str) -> bool:
    top, _, rest = name.partition(".")
    path = base.joinpath(*f"{_OTHER_NAMES.get(top, top)}.{rest}".split("."))
    is_module = any(path.with_suffix(suffix).is_file() for suffix in (".py", ".pyi")) or path.is_dir()
    # A class of a module, or a file next to the package, as unsnarl.pth.
    is_in_module = any(path.parent.with_suffix(suffix).is_file() for suffix in (".py", ".pyi"))
    return is_module or is_in_module or (base / name).is_file()


def _circle(house: House) -> list[str]:
    """Return the rooms from which a chain of arrows leads back."""

    def reached(room: str) -> set[str]:
        found: set[str] = set()
        waiting = [*house.arrows[room]]
        while waiting:
            if (one := waiting.pop()) not in found:
                found.add(one)
                waiting += house.arrows[one]
        return found

    return [room or "(the folder itself)" for room in house.arrows if room in reached(room)]


def _through_walls(house: House, file: Path, text: str) -> Iterator[str]:
    here = _module_of(file)
    home = _module_of(PurePosixPath(house.folder, "_.rs"))[:-1]
    room = house.room_of(here[len(home) :])
    read = _python_imports if file.suffix == ".py" else _rust_paths
    for line, target in sorted(set(read(text, here, is_package=file.stem in ("__init__", "mod", "lib")))):
        if target[: len(home)] == home:
            other = house.room_of(target[len(home) :])
            if other not in (room, *house.arrows[room]):
                yield f"{file}:{line}: {_name(room)} must not import {'.'.join(target)} of {_name(other)}"
        elif target[0] == home[0] and house.outside is not None and room not in house.outside:
            yield f"{file}:{line}: {_name(room)} must not import {'.'.join(target)}, outside of {house.folder}"


def _name(room: str) -> str:
    return f"the room {room}" if room else "the folder itself"


def _module_of(file: Path | PurePosixPath) -> Parts:
    """Return the module's path: from ``unsnarl`` in Python, from ``crate`` in Rust."""
    found = _SOURCE.fullmatch(file.as_posix())
    if found is None:
        raise ValueError(f"{file} is no source file of a package or a crate")
    parts = tuple(found["inner"].split("/"))
    parts = parts[:-1] if parts[-1] in ("__init__", "mod", "lib", "main") else parts
    return parts if found["base"] == "python" else ("crate", *parts)


def _python_imports(text: str, here: Parts, *, is_package: bool) -> Iterator[tuple[int, Parts]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, tuple(alias.name.split("."))) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = node.level - is_package
            base = here[: len(here) - above] if node.level else ()
            base += tuple(node.module.split(".")) if node.module else ()
            yield from ((node.lineno, (*base, alias.name)) for alias in node.names)


# Comments, texts, and visibilities, which name a module without importing it.
_RUST_NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\bpub\s*\((?:in [^)]*|[^)]*)\)', re.DOTALL)
_RUST_PATH = re.compile(r"\b(?:crate|super|self)\b(?:\s*::\s*\w+)+")
_RUST_USE = re.compile(r"\buse\s+([^;]+);")
_RUST_MODULE = re.compile(r"\bmod\s+(\w+)\s*\{")
_RUST_TOKEN = re.compile(r"::|[{},]|[\w*]+")


def _rust_paths(text: str, here: Parts, *, is_package: bool) -> Iterator[tuple[int, Parts]]:
    del is_package  # `super` is the module above, whatever file the module has
    plain = _RUST_NOISE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    modules = [(found.start(), _closing(plain, found.end()), found[1]) for found in _RUST_MODULE.finditer(plain)]

    def resolved(at: int, path: list[str]) -> Iterator[tuple[int, Parts]]:
        inner = tuple(name for start, end, name in modules if start < at < end)
        module, rest = (*here, *inner), list(path)
        if rest[0] == "crate":
            module = ("crate",)
        while rest and rest[0] in ("crate", "self", "super"):
            module = module[:-1] if rest.pop(0) == "super" else module
        if path[0] in ("crate", "self", "super"):
            rest = rest[:-1] if rest[-1:] == ["self"] else rest  # `use a::{self, B}`
            yield plain.count("\n", 0, at) + 1, (*module, *rest)

    for found in _RUST_USE.finditer(plain):
        for path in _use_tree(_RUST_TOKEN.findall(re.sub(r"\bas\s+\w+", "", found[1]))):
            yield from resolved(found.start(), path)
    for found in _RUST_PATH.finditer(_RUST_USE.sub(lambda use: re.sub(r"[^\n]", " ", use[0]), plain)):
        yield from resolved(found.start(), re.split(r"\s*::\s*", found[0]))


def _closing(text: str, at: int) -> int:
    """Return where the brace ends that was opened before ``at``."""
    depth = 1
    for position in range(at, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def _use_tree(tokens: list[str]) -> list[list[str]]:
    """Return the paths of a ``use`` tree."""
    paths: list[list[str]] = []
    before: list[list[str]] = [[]]
    path: list[str] = []
    for token in tokens:
        if token == "{":
            before.append([*before[-1], *path])
            path = []
        elif token in ("}", ","):
            if path:
                paths.append([*before[-1], *path])
            path = []
            if token == "}":
                before.pop()
        elif token != "::":
            path.append(token)
    return [*paths, *([path] if path else [])]
