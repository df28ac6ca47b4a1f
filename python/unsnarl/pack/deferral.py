"""Compilation of packed modules; on CPython 3.15 imports of late modules become lazy imports (PEP 810).

A top-level statement that imports only late modules, or only fixed names from a late module, is compiled as if it
began with ``lazy``. A fixed name has the same value at any time. So ``from late import name`` does not load the
module either.

Invariant: all other statements are compiled as written. So are imports inside ``try``, ``with``, functions and
classes, where the language has no lazy import.

Things that do not work: ``sys.set_lazy_imports("all")`` with a filter for the late modules. The interpreter also calls
the filter for the program's own ``lazy import``, which the filter cannot distinguish and would switch off.
"""

from __future__ import annotations

import ast
import sys

from . import quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from types import CodeType

HAS_LAZY_IMPORTS = hasattr(sys, "set_lazy_imports")


def fixed_names(paths: Mapping[str, str], late: Collection[str]) -> dict[str, set[str]]:
    """Return the fixed names of each late module; nothing where the interpreter has no lazy imports.

    Raises OSError, SyntaxError and ValueError if a module's file can no longer be read or parsed.
    """
    found: dict[str, set[str]] = {}
    for name in late if HAS_LAZY_IMPORTS else ():
        with open(paths[name], "rb") as file:
            found[name], _ = quiet.bound(ast.parse(file.read()))
    return found


def compiled(source: bytes, path: str, package: str, late: Mapping[str, Collection[str]], optimize: int) -> CodeType:
    """Return the code of a module; ``package`` is the base of its relative imports, ``optimize`` the -O level.

    ``late`` maps the late modules to their fixed names.

    Raises SyntaxError or ValueError if this interpreter cannot compile the source.
    """
    if not (HAS_LAZY_IMPORTS and late):
        return compile(source, path, "exec", dont_inherit=True, optimize=optimize)
    tree = ast.parse(source, path)
    for statement in tree.body:
        if _is_of_late(statement, package, late):
            setattr(statement, "is_lazy", 1)  # noqa: B010 (other interpreters' syntax trees have no such field)
    return compile(tree, path, "exec", dont_inherit=True, optimize=optimize)


def _is_of_late(statement: ast.stmt, package: str, late: Mapping[str, Collection[str]]) -> bool:
    if isinstance(statement, ast.Import):
        # `import a.b` binds a, which is a package and therefore not late.
        return all(alias.name in late and (alias.asname or "." not in alias.name) for alias in statement.names)
    if not isinstance(statement, ast.ImportFrom):
        return False
    base = statement.module or ""
    if statement.level:
        parts = package.split(".")
        base = ".".join([*parts[: len(parts) - statement.level + 1], base])
    return base in late and all(alias.name in late[base] for alias in statement.names)
