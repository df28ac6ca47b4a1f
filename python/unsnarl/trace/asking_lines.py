"""What the source of a line of Python says about asking: whether its loop does nothing but look for a change.

Calls into C are on no stack, and `while not done: pass` calls nothing at all: only the source tells that such a loop
waits. Must never: raise, or run the program's code. Invariant: a loop whose conditions another thread alone can change
asks; one that changes them itself, or does anything else in each round, does not.
"""

from __future__ import annotations

import ast
import functools

from unsnarl.trace import source

ASKING_CALLS = frozenset(
    (
        *("is_set", "is_alive", "done", "cancelled", "empty", "full", "qsize", "locked", "ready", "running", "poll"),
        *("exists", "is_file", "is_dir", "isfile", "isdir", "time", "monotonic", "perf_counter", "time_ns"),
        *("monotonic_ns", "perf_counter_ns", "len", "bool", "getattr"),
    )
)
"""Functions and methods that return at once what is so now."""

LONGEST = 60
"""Characters of a condition that are shown."""

_COMPUTING = (
    *(ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)
"""Parts of a condition that do more than look."""

_TRIVIAL = (ast.Pass, ast.Continue, ast.Break)


@functools.lru_cache(maxsize=4096)
def asked(file: str, line: int) -> str:
    """Return the condition that a line looks at again and again, as `while not done`; empty if its loop does more.

    The body of an `if` runs when something has changed, so it may do anything but change what the loop looks at: a loop
    that does so computes.
    """
    loops = [node for node in ast.walk(source.tree(file)) if isinstance(node, ast.While) and _is_around(node, line)]
    if not loops:
        return ""
    loop = max(loops, key=lambda node: node.lineno)
    conditions = _conditions(loop)
    if conditions is None or not all(_only_asks(test) for _, test in conditions):
        return ""
    looked_at = {node.id for _, test in conditions for node in ast.walk(test) if isinstance(node, ast.Name)}
    if looked_at & _changed(loop):
        return ""
    for word, test in conditions:
        if test.lineno <= line <= (test.end_lineno or 0):
            return _short(f"{word} {ast.unparse(test)}")
    is_in_body = any(_is_around(statement, line) for statement in loop.body if not isinstance(statement, ast.If))
    return _short(f"while {ast.unparse(loop.test)}") if is_in_body else ""


def _conditions(loop: ast.While) -> list[tuple[str, ast.expr]] | None:
    """Return what a loop tests in each round; None if it does anything else."""
    result = [("while", loop.test)]
    rest = list(loop.body)
    while rest:
        statement = rest.pop(0)
        if isinstance(statement, ast.If):
            result.append(("if", statement.test))
            rest += statement.orelse
        elif not isinstance(statement, _TRIVIAL) and not _is_constant(statement):
            return None
    return result


def _changed(loop: ast.While) -> set[str]:
    """Return the names that the bodies of a loop's `if` statements bind, delete, or call a method of.

    A body that ends the loop, or returns, changes nothing for the next round.
    """
    bodies = [node.body for node in ast.walk(loop) if isinstance(node, ast.If)]
    going_on = [body for body in bodies if not isinstance(body[-1], (ast.Break, ast.Return, ast.Raise))]
    names: set[str] = set()
    for node in (node for body in going_on for statement in body for node in ast.walk(statement)):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not _gives_back(node.func):
            names |= {inner.id for inner in ast.walk(node.func.value) if isinstance(inner, ast.Name)}
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            names |= {inner.id for inner in ast.walk(node.value) if isinstance(inner, ast.Name)}
    return names


def _gives_back(method: ast.Attribute) -> bool:
    """Tell whether a method releases what a condition has acquired: the next round asks again."""
    return method.attr == "release"


def _only_asks(test: ast.expr) -> bool:
    for node in ast.walk(test):
        if isinstance(node, _COMPUTING) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)):
            return False
        if isinstance(node, ast.Call) and not (_name(node.func) in ASKING_CALLS or _tries(node)):
            return False
    return True


def _tries(call: ast.Call) -> bool:
    """Tell whether a call acquires a lock only if that is free."""
    if _name(call.func) != "acquire":
        return False
    values = [*call.args[:1], *(word.value for word in call.keywords if word.arg in ("blocking", "timeout", "block"))]
    return any(isinstance(value, ast.Constant) and value.value in (False, 0) for value in values)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _is_constant(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _is_around(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or 0)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
