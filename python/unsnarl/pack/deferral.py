"""Compile a packed module; where the interpreter has lazy imports (PEP 810, 3.15), with those of late modules.

A statement of the module's own body that imports nothing but a late module, or names from
one that stand for the same at any time, is compiled as if it began with ``lazy``. So ``from late import name`` does
not load it either.

Invariant: other statements are compiled as they stand; those inside of ``try``, ``with``, functions
and classes too, where the language knows no lazy import.

Things that do not work: ``sys.set_lazy_imports("all")`` with a filter for the late modules (the filter is asked
for the program's own ``lazy import`` too, cannot tell it from others, and would switch it off).
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
    """Return of each late module the names that stand for the same at any time; nothing without lazy imports.

    Raises OSError, SyntaxError and ValueError for what has become no module since.
    """
    found: dict[str, set[str]] = {}
    for name in late if HAS_LAZY_IMPORTS else ():
        with open(paths[name], "rb") as file:
            found[name], _ = quiet.bound(ast.parse(file.read()))
    return found


def compiled(source: bytes, path: str, package: str, late: Mapping[str, Collection[str]], optimize: int) -> CodeType:
    """Return the code of a module; ``package`` is what its relative imports count from, ``optimize`` the -O level.

    ``late`` are the late modules, with the names that may be taken from them at any time.

    Raises SyntaxError or ValueError for what is no source of this interpreter's.
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
        # `import a.b` binds a, which is a package and not late.
        return all(alias.name in late and (alias.asname or "." not in alias.name) for alias in statement.names)
    if not isinstance(statement, ast.ImportFrom):
        return False
    base = statement.module or ""
    if statement.level:
        parts = package.split(".")
        base = ".".join([*parts[: len(parts) - statement.level + 1], base])
    return base in late and all(alias.name in late[base] for alias in statement.names)
