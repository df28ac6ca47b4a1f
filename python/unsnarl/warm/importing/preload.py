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
    import ast
    from collections.abc import Iterator
    from typing import Any

    from .own_changes import Changes

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


def _main_of(path: str) -> tuple[bytes, str]:
    """Return source and file name of the ``__main__`` of an archive or a directory; nothing if it has no source."""
    spec = PathFinder.find_spec("__main__", [path])
    loader: Any = spec.loader if spec is not None else None
    source: str | None = loader.get_source("__main__") if loader is not None else None
    return (source or "").encode(), (spec.origin if spec is not None else None) or path


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


class Import:
    """A module that the command's own file names in an import statement."""

    def __init__(
        self, name: str, is_certain: bool, is_from: bool = False, is_late: bool = False, is_after_code: bool = True
    ) -> None:
        self.name = name
        # Whether code of the command may run before it is imported.
        self.is_after_code = is_after_code
        # Whether the file may have changed `sys.path` by then, so that another module is found.
        self.is_late = is_late
        # Why it is late, in words, if that is not the reason.
        self.why_late = ""
        # Whether each run imports it, judged by where the statement is.
        self.is_certain = is_certain
        # Whether it is from `from package import name`, where the name may be no module.
        self.is_from = is_from

    def is_wanted(self) -> bool:
        """Return whether it is left to import ahead, after the modules before it."""
        package, _, name = self.name.rpartition(".")
        is_left = not self.is_from or (package in sys.modules and name not in vars(sys.modules[package]))
        return is_left and not self.is_late


def _own_file(command: Command) -> tuple[bytes, str] | None:
    """Return source and path of the command's own file; None if it is a module without a source."""
    path = command.name
    if command.kind == "module":
        found = _module_file(command.name)
        if found is None:
            return None
        path = found
    if command.is_on_path:
        return _main_of(path)
    with open(path, "rb") as file:
        return file.read(), path


def before_imports(command: Command) -> tuple[bool, Changes]:
    """Return whether no code of the command's own file runs before the imports that each run makes, and its changes.

    Such code, or a module that only some runs import before, may change the environment, which an import may copy.
    """
    import ast

    from .own_changes import Changes

    own = _own_file(command)
    if own is None:
        return False, Changes()
    source, tree = own[0], ast.parse(*own)
    ends = [node.end_lineno or node.lineno for node, is_certain in _statements(tree.body, True) if is_certain]
    last = max(ends, default=0)
    before = b"\n".join(source.splitlines()[:last])
    # A function of the file may be called by a module that it imports.
    is_kept = b"environ" not in before and b"putenv" not in before
    return is_kept and all(map(_is_quiet, _until(tree.body, last))), Changes(source, tree)


def _first_code(tree: ast.Module) -> tuple[int, int]:
    """Return the place of the first statement that is no import and runs code."""
    loud = (node for node in _until(tree.body, sys.maxsize) if not _is_quiet(node))
    return next(((node.lineno, node.col_offset) for node in loud), (sys.maxsize, 0))


def _until(body: list[ast.stmt], last: int) -> Iterator[ast.stmt]:
    """Yield the statements that begin no later than a line, also those that only a command runs."""
    import ast

    for node in body:
        if node.lineno <= last:
            if isinstance(node, ast.If) and _is_of_main(node.test):
                yield from _until(node.body, last)
            else:
                yield node


def _is_quiet(node: ast.stmt) -> bool:
    """Return whether a statement is an import, or runs no code of anybody."""
    import ast

    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        values = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        return not node.decorator_list and all(isinstance(value, ast.Constant) for value in values)
    if isinstance(node, ast.Assign) and not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    return isinstance(node, (ast.Assign, ast.Expr)) and isinstance(node.value, ast.Constant)


def imports(command: Command) -> list[Import]:
    """Return the modules that the command's own file names in imports; those that each run imports come first."""
    own = _own_file(command)
    if own is None:
        return [Import(command.name, True, is_after_code=False)]
    source, path = own
    package = command.name if command.kind == "module" and path.endswith("__main__.py") else ""
    if command.kind == "module" and not package:
        package = command.name.rpartition(".")[0]
    first = [Import(package, True, is_after_code=False)] if package else []
    named = [*first, *_imports(source, path, package, command.kind == "module")]
    unique: dict[str, Import] = {}
    for one in sorted(named, key=lambda one: not one.is_certain):
        unique.setdefault(one.name, one)
    return list(unique.values())


def leave_to_runs(named: list[Import], excluded: list[str]) -> None:
    """Leave to the runs what is imported after a module that each run imports, and that is not imported ahead.

    It may depend on what that module does while it is imported.
    """
    left = ""
    for one in named:
        if not left and one.is_certain and one.name in excluded:
            left = one.name
        if left:
            one.is_late, one.is_certain = True, False
            one.why_late = f"each run imports {left} before it" if one.name != left else "-"


def put_off(command: Command, named: list[Import]) -> list[str]:
    """Return in words what is not imported, since only the command knows where it is, or what is done before."""
    late = [one for one in named if one.is_late and not one.is_from and one.name not in sys.modules]
    path = f"{command.name} changes before what it finds (sys.path, sys.modules, an attribute of a module)"
    return [f"{one.name} is not imported ahead: {one.why_late or path}" for one in late if one.why_late != "-"]


def without_late(loaded: dict[str, str], named: list[Import]) -> dict[str, str]:
    """Return what runs have loaded, without what the next run may find elsewhere."""
    late = {one.name.partition(".")[0] for one in named if one.is_late}
    return {name: origin for name, origin in loaded.items() if name.partition(".")[0] not in late}


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
        _module_file(command.name)
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


def _module_file(name: str) -> str | None:
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


def _imports(source: bytes, path: str, package: str, is_module: bool) -> Iterator[Import]:
    import ast

    from . import path_changes

    tree = ast.parse(source, path)
    change, code = path_changes.first(tree, is_module=is_module), _first_code(tree)
    for node, is_executed in _statements(tree.body, True):
        # What is in a function or a branch may be executed at any time.
        is_late = change != path_changes.NOWHERE and (not is_executed or (node.lineno, node.col_offset) > change)
        is_after = not is_executed or (node.lineno, node.col_offset) > code
        is_certain = is_executed and not is_late
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, is_certain, False, is_late, is_after) for alias in node.names)
        elif node.module != "__future__":
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, base] if base else parts)
            if base:
                yield Import(base, is_certain, False, is_late, is_after)
                yield from (Import(f"{base}.{alias.name}", is_certain, True, is_late, is_after) for alias in node.names)


def _statements(body: list[ast.stmt], is_certain: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Yield all imports, and whether each run executes them: not those in functions and branches."""
    import ast

    for node in body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            # `lazy import` (Python 3.15) imports where the name is first used.
            yield node, is_certain and not getattr(node, "is_lazy", 0)
            continue
        passed: list[ast.stmt] = []
        if isinstance(node, (ast.Try, ast.TryStar)):
            passed = [*node.body, *node.orelse, *node.finalbody]
        elif isinstance(node, (ast.With, ast.ClassDef)) or (isinstance(node, ast.If) and _is_of_main(node.test)):
            passed = node.body
        yield from _statements(passed, is_certain)
        known = {id(inner) for one in passed for inner in ast.walk(one)}
        for inner in ast.walk(node):
            if isinstance(inner, (ast.Import, ast.ImportFrom)) and id(inner) not in known:
                yield inner, False


def _is_of_main(test: ast.expr) -> bool:
    import ast

    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")


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
