"""What the command's own file imports, and when: before or after its other code, in each run or in some.

Must never run a line of the file. Invariant: an import counts as certain only where each run executes it.

Only a learning run loads it: it needs ``ast``.
"""

from __future__ import annotations

import ast
import sys
from importlib.machinery import PathFinder

from . import preload
from .own_changes import Changes
from .path_changes import NOWHERE

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .preload import Command


def _main_of(path: str) -> tuple[bytes, str]:
    """Return source and file name of the ``__main__`` of an archive or a directory; nothing if it has no source."""
    spec = PathFinder.find_spec("__main__", [path])
    loader: Any = spec.loader if spec is not None else None
    source: str | None = loader.get_source("__main__") if loader is not None else None
    return (source or "").encode(), (spec.origin if spec is not None else None) or path


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
        # Whether each run imports it, but after a module that is left to the runs, or it is that module.
        self.is_left = False
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


class OwnFile:
    """The command's own file, parsed once; without a tree, if it is a module without a source."""

    def __init__(self, command: Command) -> None:
        self._command = command
        source, self._path = _source_of(command) or (b"", "")
        self._source = source
        self._tree = ast.parse(source, self._path) if self._path else None
        self.changes = Changes(source, self._tree, is_module=command.kind == "module")

    def is_quiet(self) -> bool:
        """Return whether no code of the file runs before the imports that each run makes.

        Such code, or a module that only some runs import before, may change the environment, which an import may copy.
        """
        if self._tree is None:
            return False
        ends = [node.end_lineno or node.lineno for node, is_certain in _statements(self._tree.body, True) if is_certain]
        last = max(ends, default=0)
        before = b"\n".join(self._source.splitlines()[:last])
        # A function of the file may be called by a module that it imports.
        is_kept = b"environ" not in before and b"putenv" not in before
        return is_kept and all(map(_is_quiet, _until(self._tree.body, last)))

    def imports(self) -> list[Import]:
        """Return the modules that the file names in imports; those that each run imports come first."""
        name, is_module = self._command.name, self._command.kind == "module"
        if self._tree is None:
            return [Import(name, True, is_after_code=False)]
        package = name if is_module and self._path.endswith("__main__.py") else ""
        if is_module and not package:
            package = name.rpartition(".")[0]
        first = [Import(package, True, is_after_code=False)] if package else []
        named = [*first, *_imports(self._tree, self.changes.first, package)]
        unique: dict[str, Import] = {}
        for one in sorted(named, key=lambda one: not one.is_certain):
            unique.setdefault(one.name, one)
        return list(unique.values())


def _source_of(command: Command) -> tuple[bytes, str] | None:
    path = preload.module_file(command.name) if command.kind == "module" else command.name
    if path is None:
        return None
    if command.is_on_path:
        return _main_of(path)
    with open(path, "rb") as file:
        return file.read(), path


def _first_code(tree: ast.Module) -> tuple[int, int]:
    """Return the place of the first statement that is no import and runs code."""
    loud = (node for node in _until(tree.body, sys.maxsize) if not _is_quiet(node))
    return next(((node.lineno, node.col_offset) for node in loud), (sys.maxsize, 0))


def _until(body: list[ast.stmt], last: int) -> Iterator[ast.stmt]:
    """Yield the statements that begin no later than a line, also those that only a command runs."""
    for node in body:
        if node.lineno <= last:
            if isinstance(node, ast.If) and _is_of_main(node.test):
                yield from _until(node.body, last)
            else:
                yield node


def _is_quiet(node: ast.stmt) -> bool:
    """Return whether a statement is an import, or runs no code of anybody."""
    if isinstance(node, (ast.Import, ast.ImportFrom, ast.Pass)):
        return True
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        values = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
        return not node.decorator_list and all(isinstance(value, ast.Constant) for value in values)
    if isinstance(node, ast.Assign) and not all(isinstance(target, ast.Name) for target in node.targets):
        return False
    return isinstance(node, (ast.Assign, ast.Expr)) and isinstance(node.value, ast.Constant)


def leave_to_runs(named: list[Import], excluded: list[str]) -> str:
    """Leave to the runs what is imported after a module that each run imports, and that is not imported ahead.

    It may depend on what that module does while it is imported. Returns the name of that module, or nothing.
    """
    left = ""
    for one in named:
        if not left and one.is_certain and one.name in excluded:
            left = one.name
        if left:
            one.is_late, one.is_certain, one.is_left = True, False, True
            one.why_late = f"each run imports {left} before it" if one.name != left else "-"
    return left


def put_off(command: Command, named: list[Import]) -> list[str]:
    """Return in words what is not imported, since only the command knows where it is, or what is done before."""
    late = [one for one in named if one.is_late and not one.is_from and one.name not in sys.modules]
    path = f"{command.name} changes before what it finds (sys.path, sys.modules, an attribute of a module)"
    return [f"{one.name} is not imported ahead: {one.why_late or path}" for one in late if one.why_late != "-"]


def without_late(loaded: dict[str, str], named: list[Import]) -> dict[str, str]:
    """Return what runs have loaded, without what the next run may find elsewhere."""
    late = {one.name.partition(".")[0] for one in named if one.is_late}
    return {name: origin for name, origin in loaded.items() if name.partition(".")[0] not in late}


def _imports(tree: ast.Module, change: tuple[int, int], package: str) -> Iterator[Import]:
    code = _first_code(tree)
    for node, is_executed in _statements(tree.body, True):
        # What is in a function or a branch may be executed at any time.
        is_late = change != NOWHERE and (not is_executed or (node.lineno, node.col_offset) > change)
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
    return ast.unparse(test) in ("__name__ == '__main__'", "'__main__' == __name__")
