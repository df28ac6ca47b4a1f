"""Finds the first place where a command's own file may change what later imports find.

That is ``sys.path``, ``sys.modules``, an attribute of an imported module, the time zone of the process. What the file
imports from there on may come out otherwise than without the change, and nobody but the command makes the change, which
may depend on its arguments. So none of it is imported ahead.

Invariant: in doubt a statement counts as a change. A branch counts as dead only where no plain run takes it.
"""

from __future__ import annotations

import ast

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeGuard

# Beyond the last place of any file.
NOWHERE = (1 << 62, 0)
# What of `sys` decides what an import finds, and its methods that only read.
_FOUND_BY = ("path", "modules")
_READING = ("get", "items", "keys", "values", "copy", "index", "count")
# Functions that change the process for what is imported later.
_SETTING = ("tzset", "install_as_MySQLdb")
# Functions that only read a list.
_READERS = frozenset(("enumerate", "join", "len", "list", "print", "repr", "set", "sorted", "str", "tuple"))
_ADDING = frozenset(("addsitedir", "addpackage", "addusersitepackages"))
# Conditions that hold in a frozen program, or in a file that does not run with `python -m`.
_FROZEN = ("getattr(sys, 'frozen', None)", "getattr(sys, 'frozen', False)", "hasattr(sys, 'frozen')")
_NO_PACKAGE = ("not __package__", "__package__ == ''", "__package__ is None", "__package__ in (None, '')")
# With `python -m` the first entry is the caller's directory, which is there in no learning run and no server.
_WITHOUT_FIRST = ("sys.path.pop(0)", "del sys.path[0]", "sys.path.remove('')")


def find(tree: ast.Module, *, is_module: bool) -> tuple[tuple[int, int], bool]:
    """Return line and column of the first change, and whether any module may come out otherwise because of one.

    That is so if more is changed than where modules are found. ``is_module``: the file runs with ``python -m``.
    """
    imported = _imported(tree)
    systems = {"sys"} | {alias.asname or alias.name for alias in imported if alias.name == "sys"}
    found = [place for node in tree.body for place in _changes(node, systems, is_module)]
    of_process = [(node.lineno, node.col_offset) for node in _of_process(tree, imported)]
    return min([*found, *of_process], default=NOWHERE), bool(of_process) or any(map(_is_of_modules, _written_by(tree)))


def are_in(tree: ast.Module) -> bool:
    """Return whether a module may change what others find that are imported after it, in a way that runs do not show.

    Functions count, too, and whatever it has imported may be a module.
    """
    imported = [*_imported(tree), *_imported_from(tree)]
    names = {alias.asname or alias.name.partition(".")[0] for alias in imported}
    items = [node for node in _items_of(tree) if not _is_environment(node)]
    is_of_process = any(_is_of_process(node, names) for node in ast.walk(tree))
    return is_of_process or any(_root(node) in names for node in items) or any(map(_is_of_modules, _written_by(tree)))


def _is_environment(node: ast.expr) -> bool:
    """Return whether a container is ``os.environ``: runs note what is changed there."""
    return _name(node) in ("environ", "environb")


def _is_of_modules(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "modules" and _plain_name(node.value) == "sys"


def _imported(tree: ast.Module) -> list[ast.alias]:
    return [alias for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]


def _imported_from(tree: ast.Module) -> list[ast.alias]:
    return [alias for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names]


def _of_process(tree: ast.Module, imported: list[ast.alias]) -> Iterator[ast.Attribute | ast.Call]:
    modules = {alias.asname or alias.name.partition(".")[0] for alias in imported} - {"sys"}
    return (node for node in ast.walk(tree) if _is_of_process(node, modules))


def _written_by(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the containers that a file adds to or removes from."""
    yield from _items_of(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr not in _READING:
            yield node.func.value


def _items_of(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield the containers of which a file sets or removes an item."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node.value


def _is_of_process(node: ast.AST, modules: set[str]) -> TypeGuard[ast.Attribute | ast.Call]:
    """Return whether a node sets an attribute of a module, or calls what changes the process for later imports."""
    if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
        return _root(node.value) in modules
    if not isinstance(node, ast.Call):
        return False
    is_set = _plain_name(node.func) == "setattr" and bool(node.args) and _plain_name(node.args[0]) in modules
    return is_set or _name(node.func) in _SETTING


def _changes(node: ast.AST, systems: set[str], is_module: bool) -> Iterator[tuple[int, int]]:
    if is_module and isinstance(node, ast.stmt) and ast.unparse(node) in _WITHOUT_FIRST:
        return
    if _is_change(node, systems):
        yield (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
    read = {id(one) for one in _read_by(node)}
    dead = {id(one) for one in node.body} if isinstance(node, ast.If) and _is_dead(node.test, is_module) else set[int]()
    for child in ast.iter_child_nodes(node):
        if id(child) not in dead and not (id(child) in read and _is_path(child, systems)):
            yield from _changes(child, systems, is_module)


def _is_change(node: ast.AST, systems: set[str]) -> bool:
    """Return whether a node names what imports are found by, or adds to it; those that only read it are not asked."""
    if isinstance(node, ast.ImportFrom):
        return node.module == "sys" and any(alias.name in (*_FOUND_BY, "*") for alias in node.names)
    return _is_path(node, systems) or (isinstance(node, (ast.Attribute, ast.Name)) and _name(node) in _ADDING)


def _is_path(node: ast.AST, systems: set[str]) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in _FOUND_BY and _plain_name(node.value) in systems


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else _plain_name(node)


def _plain_name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _root(node: ast.AST) -> str:
    """Return the first name of a dotted one."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return _plain_name(node)


def _read_by(node: ast.AST) -> list[ast.expr]:
    """Return the parts of a node that it only reads."""
    if isinstance(node, ast.Call) and _name(node.func) in _READERS:
        return node.args
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        return [node.value]
    if isinstance(node, ast.Attribute) and node.attr in _READING:
        return [node.value]
    return [node.iter] if isinstance(node, (ast.For, ast.comprehension)) else []


def _is_dead(test: ast.expr, is_module: bool) -> bool:
    if is_module and ast.unparse(test) in _NO_PACKAGE:
        return True
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(_is_dead(one, is_module) for one in test.values)
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Eq):
        compared = test.comparators[0]
        return ast.unparse(test.left) in _FROZEN and isinstance(compared, ast.Constant) and bool(compared.value)
    return ast.unparse(test) in _FROZEN
