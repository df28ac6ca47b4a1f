"""Finds code of the command's own file that may change what a later import takes from another module.

``cfg.load(sys.argv[1])``, then ``import app``, whose body reads ``cfg.MODE``. No source shows what a call changes, so
the first runs import such a module themselves, and it is imported ahead only if it comes out as in these
(:mod:`.globals_made`).

Invariant: code is left out only where it runs after the import, or only reads.
"""

from __future__ import annotations

import ast
import sys

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterator

Place = tuple[int, int]

# Modules of the standard library with functions that change the process for what is imported later. What changes
# the environment, the working directory or the search path is found otherwise.
_STATEFUL = frozenset((
    "_thread", "asyncio", "builtins", "codecs", "concurrent", "decimal", "gc", "gettext", "importlib", "locale",
    "logging", "mimetypes", "multiprocessing", "random", "readline", "signal", "socket", "threading", "warnings",
))  # fmt: skip
# Methods of objects in `sys` that only read, or only write what is shown.
_HARMLESS_OF_SYS = (
    "exit",
    "write",
    "flush",
    "isatty",
    "fileno",
    "getsizeof",
    "get",
    "index",
    "count",
    "insert",
    "append",
)


class OwnCalls:
    """The places of a file's code that may change something."""

    def __init__(self, tree: ast.Module) -> None:
        self._tops = dict(_tops(tree))
        nodes = (node for node in ast.walk(tree) if isinstance(node, (ast.expr, ast.stmt)))
        self._places = [(node.lineno, node.col_offset) for node in nodes if self._may_change(node)]
        self._functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]

    def may_precede(self, node: ast.stmt) -> bool:
        """Return whether such code may run before an import statement.

        Code of a function may run at any time, but a function's own lines after the import only after it.
        """
        place = (node.lineno, node.col_offset)
        around = [one for one in self._functions if one.lineno <= node.lineno <= (one.end_lineno or one.lineno)]
        if not around:
            return any(one < place for one in self._places)
        end = around[0].end_lineno or node.lineno  # of the outermost
        return any(one < place or one[0] > end for one in self._places)

    def _may_change(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Call):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            return self._is_strange(node.func, is_called=True) or any(map(self._is_foreign, given))
        if isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            return self._is_strange(node, is_called=False)
        return isinstance(node, ast.AugAssign) and self._is_strange(node.target, is_called=False)

    def _is_foreign(self, node: ast.AST) -> bool:
        """Return whether an expression begins with a name of a module that is not the standard library's."""
        top = self._tops.get(_root(node), "")
        return bool(top) and top not in sys.stdlib_module_names

    def _is_strange(self, node: ast.expr, *, is_called: bool) -> bool:
        top = self._tops.get(_root(node), "")
        if not top:
            return False
        if top == "sys":
            harmless = _HARMLESS_OF_SYS if is_called else ("dont_write_bytecode",)
            return not (isinstance(node, ast.Attribute) and node.attr in harmless)
        return top not in sys.stdlib_module_names or top in _STATEFUL


def _tops(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield the names that imports bind, each with the top-level module; ``.`` stands for the own package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((one.asname or one.name.partition(".")[0], one.name.partition(".")[0]) for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            top = "." if node.level else (node.module or "").partition(".")[0]
            yield from ((one.asname or one.name, top) for one in node.names)


def _root(node: ast.AST) -> str:
    """Return the first name of an expression such as ``a.b(c)[d].e``."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred, ast.Await)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""
