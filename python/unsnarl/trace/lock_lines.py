"""What the source of a line of Python says about locks: whether it acquires one, or its thread holds another one.

C code is on no stack, so a wait in it may be one for a lock, or for an item of a ``queue.SimpleQueue``. Must never:
raise, or run the program's code. Invariant: a source that cannot be read answers None, or that nothing is held.
"""

from __future__ import annotations

import ast
import functools
import linecache
import re

_ITEM = re.compile(r"\.get\b")
_ACQUIRE = re.compile(r"\.acquire\(")
_LOCK = re.compile(r"\bacquire|__enter__|enter_context|^\s*with\b")


def takes_item(file: str, line: int) -> bool:
    """Tell whether a line takes an item of a queue, and acquires no lock."""
    text = linecache.getline(file, line)
    return bool(_ITEM.search(text)) and not _LOCK.search(text)


def calls_acquire(file: str, line: int) -> bool:
    """Tell whether a line calls a method ``acquire``."""
    return bool(_ACQUIRE.search(linecache.getline(file, line)))


def acquires(file: str, line: int) -> bool | None:
    """Tell whether a line acquires a lock; None if its source cannot be read."""
    text = linecache.getline(file, line)
    if not text:
        return None
    return bool(_LOCK.search(text)) or any(_enters(block, line) for block in _blocks(_function(file, line)))


def holds(file: str, line: int) -> bool:
    """Tell whether a thread at a line holds a lock that the same function has acquired before.

    Any ``with`` statement around the line counts: its source does not tell a lock from a file.
    """
    function = _function(file, line)
    for block in _blocks(function):
        is_inside = max(block.body[0].lineno, block.lineno + 1) <= line <= (block.end_lineno or 0)
        if is_inside or (_enters(block, line) and len(block.items) > 1):
            return True
    return bool(_acquired(function, line))


def _enters(block: ast.With, line: int) -> bool:
    return line == block.lineno or block.lineno < line < block.body[0].lineno


def _blocks(function: ast.AST) -> list[ast.With]:
    return [node for node in _own_nodes(function) if isinstance(node, ast.With)]


def _acquired(function: ast.AST, line: int) -> set[str]:
    """Return what a function has acquired before a line, and not released before it."""
    result: set[str] = set()
    calls = [node for node in _own_nodes(function) if isinstance(node, ast.Call) and node.lineno < line]
    for call in sorted(calls, key=lambda call: (call.lineno, call.col_offset)):
        if isinstance(call.func, ast.Attribute) and call.func.attr == "acquire":
            result.add(ast.unparse(call.func.value))
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "release":
            result.discard(ast.unparse(call.func.value))
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
    tree = _tree(file)
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body[0].lineno <= line <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=tree)


@functools.lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module:
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])
