"""What the source of a line of Python says about locks: whether it acquires one, or its thread holds another one.

C code is on no stack, so a wait in it may be one for a lock, or for an item of a ``queue.SimpleQueue``. Must never:
raise, or run the program's code. Invariant: a source that cannot be read answers None, or that nothing is held.
"""

from __future__ import annotations

import ast
import functools
import re

from unsnarl.trace import source

_ITEM = re.compile(r"\.get\b|\bget\(")
_ACQUIRE = re.compile(r"\.acquire\(")
_LOCK = re.compile(r"\bacquire|__enter__|enter_context|^\s*with\b")


def takes_item(file: str, line: int) -> bool:
    """Tell whether a line takes an item of a queue, by `queue.get` or by a bound `get`, and acquires no lock."""
    text = source.line(file, line).partition("#")[0]
    return bool(_ITEM.search(text)) and not _LOCK.search(text)


def calls_acquire(file: str, line: int) -> bool:
    """Tell whether a line calls a method ``acquire``."""
    return bool(_ACQUIRE.search(source.line(file, line)))


@functools.lru_cache(maxsize=4096)
def shared_objects(file: str, line: int) -> frozenset[str]:
    """Return the objects whose methods a line calls and that no local variable of its function is, as ``self.db``.

    Imported modules are left out. Several threads may use such an object at once, also where it is one in C code.
    """
    function = _function(file, line)
    calls = (node for node in _own_nodes(function) if isinstance(node, ast.Call))
    around = (call for call in calls if call.lineno <= line <= (call.end_lineno or 0))
    values = [call.func.value for call in around if isinstance(call.func, ast.Attribute)]
    local = _local_names(function) | _imported(file)
    return frozenset(ast.unparse(value) for value in values if _first_name(value) not in ("", *local))


def _first_name(value: ast.expr) -> str:
    """Return the name that a chain of attributes begins with, or an empty string for another expression."""
    while isinstance(value, ast.Attribute):
        value = value.value
    return value.id if isinstance(value, ast.Name) else ""


def _local_names(function: ast.AST) -> set[str]:
    """Return the local variables of a function; the instance of a method is shared. A module's are not local."""
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return set()
    every = function.args
    names = {each.arg for each in (*every.posonlyargs, *every.args, *every.kwonlyargs)} - {"self", "cls"}
    nodes = [node for node in _own_nodes(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return names | {node.id for node in nodes}


def _imported(file: str) -> set[str]:
    imports = (node for node in ast.walk(source.tree(file)) if isinstance(node, (ast.Import, ast.ImportFrom)))
    return {(alias.asname or alias.name).partition(".")[0] for node in imports for alias in node.names}


def acquires(file: str, line: int) -> bool | None:
    """Tell whether a line acquires a lock; None if its source cannot be read."""
    text = source.line(file, line)
    if not text:
        return None
    return bool(_LOCK.search(text)) or any(_enters(block, line) for block in _blocks(_function(file, line)))


def gives_back(file: str, line: int) -> bool:
    """Tell whether the function of a line also releases what the line acquires."""
    function = _function(file, line)
    if any(_enters(block, line) for block in _blocks(function)):
        return True
    called = [node.func for node in _own_nodes(function) if isinstance(node, ast.Call)]
    methods = [call for call in called if isinstance(call, ast.Attribute)]
    released = {ast.unparse(call.value) for call in methods if call.attr == "release"}
    acquired = (call for call in methods if call.attr == "acquire" and call.lineno <= line <= (call.end_lineno or 0))
    return any(ast.unparse(call.value) in released for call in acquired)


def acquired(file: str, line: int) -> frozenset[str]:
    """Return the names of what a line acquires, as ``lock`` of ``with self.lock``."""
    function = _function(file, line)
    calls = (node for node in _own_nodes(function) if isinstance(node, ast.Call))
    taken = [_taken(call) for call in calls if call.lineno <= line <= (call.end_lineno or 0)]
    taken += [item.context_expr for block in _blocks(function) if _enters(block, line) for item in block.items]
    return frozenset(_last_name(value) for value in taken if value is not None)


def held(file: str, line: int) -> frozenset[str]:
    """Return the names of what a thread at a line holds, which the same function has acquired before.

    Any ``with`` statement around the line counts: its source does not tell a lock from a file.
    """
    function = _function(file, line)
    result = {_last_name(value) for value in _acquired(function, line).values()}
    for block in _blocks(function):
        is_inside = max(block.body[0].lineno, block.lineno + 1) <= line <= (block.end_lineno or 0)
        if is_inside or (_enters(block, line) and len(block.items) > 1):
            result |= {_last_name(item.context_expr) for item in block.items}
    return frozenset(result)


def _taken(call: ast.Call) -> ast.expr | None:
    """Return the lock that a call acquires, if it is one that does."""
    if not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr == "enter_context":
        return next(iter(call.args), None)
    return call.func.value if call.func.attr in ("acquire", "__enter__") else None


def _last_name(value: ast.expr) -> str:
    """Return the name of an object without the object that it is a part of, or else its whole expression."""
    while isinstance(value, (ast.Call, ast.Subscript)):
        value = value.func if isinstance(value, ast.Call) else value.value
    return value.attr if isinstance(value, ast.Attribute) else ast.unparse(value)


def _enters(block: ast.With, line: int) -> bool:
    return line == block.lineno or block.lineno < line < block.body[0].lineno


def _blocks(function: ast.AST) -> list[ast.With]:
    return [node for node in _own_nodes(function) if isinstance(node, ast.With)]


def _acquired(function: ast.AST, line: int) -> dict[str, ast.expr]:
    """Return what a function has acquired before a line, and not released before it."""
    result: dict[str, ast.expr] = {}
    calls = [node for node in _own_nodes(function) if isinstance(node, ast.Call) and node.lineno < line]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "acquire":
            result[ast.unparse(call.func.value)] = call.func.value
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "release":
            result.pop(ast.unparse(call.func.value), None)
    return result


def _own_nodes(function: ast.AST) -> list[ast.AST]:
    """Return the nodes of a function, without those of functions inside."""
    result: list[ast.AST] = []
    rest = list(ast.iter_child_nodes(function))
    while rest:
        node = rest.pop()
        result.append(node)
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            rest += ast.iter_child_nodes(node)
    return result


def _function(file: str, line: int) -> ast.AST:
    """Return the innermost function around a line, or else the module."""
    tree = source.tree(file)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=tree)
