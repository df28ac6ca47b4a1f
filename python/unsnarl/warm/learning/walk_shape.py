"""The shape of a loop over names: whether it does nothing with those that lack a certain beginning.

| the loop | what it may hold |
|---|---|
| a comprehension, or ``any(…)`` of one | a first condition that names pass by their beginning only |
| a statement | such conditions, or ``if not …: continue`` before anything else; its variables are not read elsewhere |

A name passes by its beginning only if the condition is ``name.startswith(…)``, or begins with that and goes on by
``and``, or has alternatives that all do so. What is compared with is a constant or a variable, and computes nothing.

Invariant: pure; in doubt the answer is None.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Position = tuple[Any, Any, Any, Any]

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SCOPES = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
# What a beginning may consist of: nothing here runs the program's code for each name.
_PLAIN = (ast.Constant, ast.Name, ast.Attribute, ast.Tuple, ast.expr_context)
# Functions by which code reads a variable without its name.
_BY_OTHER_MEANS = {"locals", "vars", "globals", "eval", "exec"}


def variables_left(
    source: bytes, position: Position, spellings: set[str], *, is_passed: bool, shadowed: set[str]
) -> frozenset[str] | None:
    """Return the variables that a loop leaves in its scope; None if it may do more than look for a beginning.

    ``position`` is that of the running instruction, ``(line, last line, column, last column)``; ``spellings`` are
    expressions for the names; the loop of ``is_passed`` was given them by its caller. ``shadowed`` are variables that
    may hide a built-in function.
    """
    tree = ast.parse(source)
    iterated = {*spellings, *(f"{one}.{view}()" for one in spellings for view in ("items", "keys"))}
    iterated |= {f"list({one})" for one in iterated if "list" not in shadowed}
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and position in (_position(node), _position(node.iter)):
            found = ast.unparse(node.iter) in iterated and not is_passed and _is_statement_harmless(node, tree)
            return frozenset(_names(node.target)) if found else None
        if isinstance(node, _COMPREHENSIONS):
            only = node.generators[0]
            if position in (_position(node), _position(only.iter)):
                is_alone = len(node.generators) == 1 and not only.is_async
                is_of_names = is_passed or ast.unparse(only.iter) in iterated
                is_fit = is_alone and is_of_names and _is_comprehension_harmless(node, only, tree, shadowed)
                return frozenset() if is_fit else None
    return None


def _position(node: Any) -> Position:
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def _names(target: ast.expr) -> list[str]:
    """Return the variables of a target that is a name, or a pair of them; the first is for the name."""
    parts = target.elts if isinstance(target, ast.Tuple) and len(target.elts) == 2 else [target]
    return [part.id for part in parts if isinstance(part, ast.Name)] if len(parts) < 3 else []


def _passes(test: ast.expr, names: list[str]) -> bool:
    """Return whether a condition is false for each name without the beginning, and has asked for nothing else."""
    if isinstance(test, ast.BoolOp):
        rest = test.values if isinstance(test.op, ast.Or) else test.values[:1]
        return all(_passes(one, names) for one in rest)
    return (
        isinstance(test, ast.Call)
        and isinstance(test.func, ast.Attribute)
        and test.func.attr == "startswith"
        and isinstance(test.func.value, ast.Name)
        and test.func.value.id == names[0]
        and len(test.args) == 1
        and not test.keywords
        and all(isinstance(part, _PLAIN) for part in ast.walk(test.args[0]))
        and not any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(test.args[0]))
    )


def _is_comprehension_harmless(node: Any, only: ast.comprehension, tree: ast.Module, shadowed: set[str]) -> bool:
    names = _names(only.target)
    if not names:
        return False
    if only.ifs:
        return _passes(only.ifs[0], names)
    is_any = "any" not in shadowed and any(
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "any"
        and len(call.args) == 1
        and call.args[0] is node
        for call in ast.walk(tree)
    )
    return is_any and isinstance(node, (ast.ListComp, ast.GeneratorExp)) and _passes(node.elt, names)


def _is_statement_harmless(loop: ast.For, tree: ast.Module) -> bool:
    names = _names(loop.target)
    if not names or not _are_filters(loop.body, names):
        return False
    scope = [each for each in ast.walk(tree) if isinstance(each, _SCOPES) and _holds(each, loop)][-1]
    bound = {id(each) for each in _bound(scope, names)}
    for each in ast.walk(scope):
        if isinstance(each, (ast.Global, ast.Nonlocal)) and {*each.names} & {*names}:
            return False
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name) and each.target.id in names:
            return False
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and _is_in(each, names, bound):
            return False
    return True


def _is_in(variable: ast.Name, names: list[str], bound: set[int]) -> bool:
    """Return whether a variable of the loop is read elsewhere, or may be."""
    return variable.id in _BY_OTHER_MEANS or (variable.id in names and id(variable) not in bound)


def _are_filters(statements: list[ast.stmt], names: list[str]) -> bool:
    for one in statements:
        if not isinstance(one, ast.If):
            return False
        if isinstance(one.test, ast.UnaryOp) and isinstance(one.test.op, ast.Not):
            is_skip = len(one.body) == 1 and isinstance(one.body[0], ast.Continue) and not one.orelse
            return is_skip and _passes(one.test.operand, names)
        if not _passes(one.test, names) or not _are_filters(one.orelse, names):
            return False
    return True


def _holds(scope: ast.AST, node: ast.AST) -> bool:
    return any(each is node for each in ast.walk(scope))


def _bound(scope: ast.AST, names: list[str]) -> Iterator[ast.AST]:
    """Yield what is inside of a loop that sets all these variables before."""
    for each in ast.walk(scope):
        if isinstance(each, ast.For) and {*_names(each.target)} >= {*names}:
            for statement in each.body:
                yield from ast.walk(statement)
        elif isinstance(each, _COMPREHENSIONS) and {*_names(each.generators[0].target)} >= {*names}:
            first = {id(part) for part in ast.walk(each.generators[0].iter)}
            yield from (part for part in ast.walk(each) if id(part) not in first)
