"""Brings an interpreter into the state in which the command's imports run, and finds what they have kept of it.

The learning run watches the imports, the server keeps their result.

Invariant: after :func:`arrange`, ``sys.argv``, ``sys.path`` and the kind of each standard stream are for an
importing module as in a plain run of the command.
"""

from __future__ import annotations

import _imp
import os
import sys
from importlib.machinery import PathFinder
from zipimport import ZipImportError, zipimporter

from . import holders

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

# Placeholder for the command's arguments while it is imported. A module that copies sys.argv copies the
# placeholder, by which the copy is found.
SENTINEL = "--unsnarl-arguments-to-be"
_SENTINEL_BYTES = SENTINEL.encode()

# Modules that a server loads and a learning run need not; neither built in nor frozen.
SERVERS = frozenset(
    [
        "__future__", "_ctypes", "_py_warnings", "_socket", "_struct", "_weakrefset", "array", "collections",
        "ctypes", "fcntl", "importlib", "keyword", "operator", "reprlib", "resource", "select", "struct",
        "sysconfig", "threading", "types", "warnings",
    ]
)  # fmt: skip


class Command:
    """A command: ``kind`` is ``script`` or ``module``, ``name`` the absolute path or the module's name.

    ``word`` is the kind as a start passes it on: with ``:NAME`` after it, if a script is called by a relative name.
    """

    def __init__(self, word: str, name: str) -> None:
        self.word = word
        self.kind, _, called = word.partition(":")
        self.name = name
        self.called = called or name
        # An archive (zipapp) or a directory, which is put on the path and whose `__main__` is run.
        self.is_on_path = self.kind == "script" and _is_importable(name)


def _is_importable(path: str) -> bool:
    """Return whether the interpreter runs the ``__main__`` of a path, by the same rule as it does."""
    if os.path.isdir(path):
        return True
    try:
        zipimporter(path)
    except (ZipImportError, OSError):
        return False
    return True


def arrange(command: Command) -> None:
    """Set ``sys.argv``, ``sys.orig_argv`` and ``sys.path`` for the command."""
    options = sys.orig_argv[1 : sys.orig_argv.index(sys.argv[0])] if sys.argv[0] in sys.orig_argv else []
    target = ["-m", command.name] if command.kind == "module" else [command.called]
    sys.argv[:] = [command.called if command.kind == "script" else "-m", SENTINEL]
    sys.orig_argv[:] = [sys.orig_argv[0], *options, *target, SENTINEL]
    # With -m the first entry is the caller's directory: set per request.
    if command.is_on_path:
        sys.path.insert(0, command.name)  # even with -P (pymain_run_python in Modules/main.c)
    elif command.kind == "script" and not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(command.name)))


def missing(command: Command) -> str:
    """Return in words that the module to run is nowhere on the path, or nothing; ignores the caller's directory."""
    from importlib.util import find_spec

    if command.kind == "script":
        return ""
    try:
        is_there = find_spec(command.name) is not None
    except (ImportError, AttributeError, ValueError):
        is_there = False
    return "" if is_there else f"there is no module {command.name} on the path"


def package_loads(command: Command) -> bool:
    """Import the package of a module that is run; return whether the package imports that very module."""
    if command.kind == "module":
        module_file(command.name)
    return has_loaded(command)


def has_loaded(command: Command) -> bool:
    """Return whether the module that is to run as ``__main__`` is imported already, which runpy warns about."""
    names = (command.name, command.name + ".__main__") if command.kind == "module" else ()
    return any("." in name and name in sys.modules and not hasattr(sys.modules[name], "__path__") for name in names)


def hideable() -> frozenset[str]:
    """Return the names of loaded modules that other files on the path could hide: neither built in nor frozen."""
    names = {name.partition(".")[0] for name in sys.modules}
    builtin = {name for name in names if name in sys.builtin_module_names or _imp.is_frozen(name)}
    return frozenset(names - builtin - {"__main__", "_unsnarl_warm"})


def covered() -> str:
    """Return in words which loaded module the command would find in another place; nothing if there is none.

    To be called before the command's imports: only unsnarl and start-up files have loaded modules by then.
    """
    library = os.path.dirname(os.__file__)
    for entry in sys.path[: sys.path.index(library) if library in sys.path else 0]:
        name = hidden(hideable() | SERVERS, entry)
        if name:
            return f"{name} in {entry} hides a module that a server needs itself"
    return ""


def hidden(names: frozenset[str], directory: str = "") -> str:
    """Return a loaded module that a file in a directory hides, or nothing. Default: the working directory."""
    try:
        entries = os.listdir(directory or ".")
    except OSError:
        return ""  # an import cannot read it either
    for name in names.intersection(entry.partition(".")[0] for entry in entries):
        spec = PathFinder.find_spec(name, [directory or os.getcwd()])
        loaded = getattr(sys.modules.get(name), "__file__", None)
        # A directory without __init__ hides no module, but extends a package that has no __init__ either.
        is_harmless = loaded or name not in sys.modules
        if spec is not None and not (_is_same(spec.origin, loaded) if spec.loader else is_harmless):
            return name
    return ""


def _is_same(found: str | None, loaded: str | None) -> bool:
    """Return whether two paths are one file, as in the checkout that an editable installation refers to."""
    try:
        return found is not None and loaded is not None and os.path.samefile(found, loaded)
    except OSError:
        return False


def module_file(name: str) -> str | None:
    """Return the source of a module, or of its ``__main__``; None if it has none."""
    from importlib.util import find_spec

    try:
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = find_spec(name + ".__main__")
    except (ImportError, AttributeError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.has_location:
        return None
    return spec.origin if spec.origin.endswith(".py") else None


def argument_copies() -> tuple[list[tuple[list[object], int, bool]], list[str]]:
    """Find the copies of the arguments that imports have made.

    Returns lists to be changed in place, as ``(list, index, is_bytes)``, and
    in words the copies that cannot be changed.
    """
    import gc

    lists: list[tuple[list[object], int, bool]] = []
    lost: list[str] = []
    things: list[Any] = gc.get_objects()
    for thing in things if _are_held(things) else ():
        kind = _kind(thing)
        if kind is list and thing is not sys.argv and thing is not sys.orig_argv:
            lists += [(thing, at, type(item) is bytes) for at, item in enumerate(thing) if _is_sentinel(item)]
        elif kind is tuple and any(map(_is_sentinel, thing)):
            lost.append("a tuple")
    for name, module in list(sys.modules.items()):
        if not name.startswith("_unsnarl_warm") and name != "__main__":
            names = holders.namespace(module)
            lost += [f"{name}.{key}" for key, value in list(names.items()) if _holds_sentinel(value)]
    return lists, lost


def _are_held(things: list[Any]) -> bool:
    """Return whether a list or a tuple beside ``sys.argv`` and ``sys.orig_argv`` holds an argument: a quick look."""
    import gc

    ours = (id(sys.argv), id(sys.orig_argv), id(things))
    some: list[Any] = [thing for thing in things if type(thing) in (list, tuple) and id(thing) not in ours]
    held: list[Any] = gc.get_referents(*some)
    derived = {kind for kind in set(map(type, held)) - {str} if issubclass(kind, (str, bytes))}
    return bool(
        [1 for item in held if type(item) is str and item == SENTINEL]
        or [1 for item in held if type(item) in derived and _is_sentinel(item)]
    )


def holds_arguments(value: object) -> bool:
    """Return whether a value is a list that contains the arguments."""
    items: Any = value
    return type(value) is list and any(map(_is_sentinel, items))


def _kind(thing: object) -> type[object]:
    return type(thing)


def _is_sentinel(item: object) -> bool:
    text: Any = item
    if issubclass(type(item), str):  # of a subclass in the learning run (`arguments`)
        return str.__eq__(text, SENTINEL)
    return type(item) is bytes and item == _SENTINEL_BYTES


def _holds_sentinel(value: object) -> bool:
    text: Any = value
    if issubclass(type(value), str):
        return str.__contains__(text, SENTINEL)
    return type(value) is bytes and _SENTINEL_BYTES in value


def environment_as_given() -> dict[bytes, bytes]:
    """Return the environment as execve wrote it; of two entries of one name the first.

    ``os.environ`` may differ from it: in the C locale the interpreter sets LC_CTYPE (PEP 538), which would
    give the same caller another key, and ``site`` may run code that sets more.
    """
    try:
        with open("/proc/self/environ", "rb") as file:
            block = file.read()
    except OSError:
        return dict(os.environb)
    given: dict[bytes, bytes] = {}
    for entry in block.split(b"\0"):
        name, sign, value = entry.partition(b"=")
        if name and sign:
            given.setdefault(name, value)
    return given


def environment_delta(before: dict[bytes, bytes], after: dict[bytes, bytes]) -> list[tuple[bytes, bytes | None]]:
    """Return the variables that the imports have set, or removed (None)."""
    changed: list[tuple[bytes, bytes | None]] = [(k, v) for k, v in after.items() if before.get(k) != v]
    return changed + [(k, None) for k in before if k not in after]


def kept_variables(environ: dict[bytes, bytes]) -> list[tuple[object, str, bytes, bool]]:
    """Find globals that hold the value of a variable in ``UNSNARL_WARM_IGNORE``.

    Returns ``(module, global, variable, is_bytes)``; each worker sets them to its caller's value.
    """
    found: list[tuple[object, str, bytes, bool]] = []
    for name in environ.get(b"UNSNARL_WARM_IGNORE", b"").split():
        raw = environ.get(name)
        if not raw:
            continue
        for module in list(sys.modules.values()):
            for key, value in list(holders.namespace(module).items()):
                if type(value) in (str, bytes) and value in (raw, os.fsdecode(raw)):
                    found.append((module, key, name, type(value) is bytes))
    return found


def terminals(tty: str) -> None:
    """Make standard streams of the caller's kinds: ``tty`` holds a digit for each, 1 for a terminal, and a size.

    A terminal is a pseudo-terminal that no process reads; the others stay /dev/null and the log. The worker
    replaces all of them before the program runs.
    """
    kinds, _, size = tty.partition(":")
    if "1" not in kinds:
        return
    master, slave = os.openpty()
    set_size(slave, size)
    for fd, wanted in enumerate(kinds):
        if wanted == "1":
            os.dup2(slave, fd)
    os.close(slave)
    # The master must stay open, or the slave is hung up; its new number is no command's.
    import fcntl

    fcntl.fcntl(master, fcntl.F_DUPFD_CLOEXEC, 200)
    os.close(master)


# `termios` has it, but would then be loaded before the command's imports. On all architectures that unsnarl knows
# (asm-generic/ioctls.h).
_TIOCSWINSZ = 0x5414


def set_size(terminal: int, size: str) -> None:
    """Give a terminal a size: four numbers, as the client writes them (crates/client/src/server/process_state.rs)."""
    if size:
        import fcntl
        import struct

        fcntl.ioctl(terminal, _TIOCSWINSZ, struct.pack("4H", *map(int, size.split("x"))))
