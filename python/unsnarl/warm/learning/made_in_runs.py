"""Compares modules with what runs have found in them, which have loaded them after code of the command.

A value that differs was made of what that code had changed, or was changed later, by a function. A global to which the
body assigns constants only cannot show the first, so it is not compared; nor is one with a recipe, nor what comes from
elsewhere and can be changed there.

Invariant: a module without a source is not judged: it sets what is its own.
"""

from __future__ import annotations

import ast
import functools
import sys

from ..importing import globals_made, holders, values

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any


class Found:
    """What runs have found in modules, and the modules that came out otherwise in an earlier learning run."""

    def __init__(self) -> None:
        self.made: dict[str, list[str]] = {}
        self.otherwise: set[str] = set()


def differing(found: dict[str, list[str]], known: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the modules that came out otherwise in a run, and why.

    ``found`` has, for each module, what runs have found; ``known`` are globals with a recipe, with their modules.
    """
    return [(name, why) for name, texts in found.items() if texts and (why := _difference(name, texts, known))]


def _difference(name: str, texts: list[str], known: set[tuple[str, str]]) -> str:
    here = globals_made.of(name)
    if name not in sys.modules or not here:
        return ""
    runs = [globals_made.parse(text) for text in texts]
    keys = [key for key, digest in here.items() if any(run.get(key, digest) != digest for run in runs)]
    keys = [key for key in keys if (name, key) not in known and not _is_renewed(name, key)]
    body = _body(name) if keys else None
    is_taken = functools.partial(_may_be_taken, body or [])
    key = next((key for key in keys if is_taken(key.split("."), holders.namespace(sys.modules[name]))), None)
    return f"{name}.{key} {globals_made.DIFFERS}" if key else ""


def _is_renewed(name: str, key: str) -> bool:
    """Return whether a global has a recipe, or is the mask of learning runs."""
    row = values.table([name], set()).get((name, key), ("", "", ""))
    return bool(row[2]) or values.is_of_mask(row)


def _body(name: str) -> list[ast.stmt] | None:
    file = holders.namespace(sys.modules[name]).get("__file__")
    try:
        with open(str(file), "rb") as source:
            return ast.parse(source.read()).body
    except (OSError, SyntaxError, ValueError):
        return None


def _may_be_taken(body: list[ast.stmt], path: list[str], names: dict[str, Any]) -> bool:
    """Return whether a body, or that of a class in it, binds a name to anything but constants.

    What it does with the name otherwise, where it stands for something that can be changed, counts, too.
    """
    if len(path) > 1:
        inner = [node for node in body if isinstance(node, ast.ClassDef) and node.name == path[0]]
        return not inner or _may_be_taken(inner[0].body, path[1:], {})
    constant = {id(target) for node in _executed(body) for target in _constant_targets(node)}
    # What is imported by a name may be changed later where it comes from.
    is_shared = type(names.get(path[0])) in (dict, list, set)
    taken = [node for node in _executed(body) if _is_named(node, path[0], is_shared) and id(node) not in constant]
    return bool(taken)


def _is_named(node: ast.AST, name: str, is_shared: bool) -> bool:
    if isinstance(node, ast.ImportFrom):
        return not is_shared and any((alias.asname or alias.name) in (name, "*") for alias in node.names)
    return isinstance(node, ast.Name) and node.id == name


def _constant_targets(node: ast.AST) -> Sequence[ast.expr]:
    if isinstance(node, ast.Assign) and _is_constant(node.value):
        return [one for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)]
    return [node.target] if isinstance(node, ast.AnnAssign) and (not node.value or _is_constant(node.value)) else []


def _is_constant(node: ast.expr) -> bool:
    """Return whether an expression has one value in each run: constants, containers of them, ``dict()``."""
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        return name in ("dict", "list", "set", "tuple", "object") and not node.args and not node.keywords
    return all(isinstance(one, _CONSTANT) for one in ast.walk(node))


_CONSTANT = (ast.Constant, ast.Tuple, ast.List, ast.Set, ast.Dict, ast.expr_context, ast.UnaryOp, ast.unaryop)


def _executed(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the nodes that run when a module is imported: not those in functions, whose defaults do."""
    for node in body:
        yield from _inside(node)


def _inside(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    skipped: set[int] = set()
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        skipped = {id(one) for one in node.body}
    elif isinstance(node, ast.Lambda):
        skipped = {id(node.body)}
    for child in ast.iter_child_nodes(node):
        if id(child) not in skipped:
            yield from _inside(child)
