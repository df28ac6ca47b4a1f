"""Changes that a command makes itself, which an import may read: variables that it sets, and the working directory.

A module that is imported ahead reads the caller's value, where a plain run would find the command's. So a module that
is imported after code of the command has run, and that reads what the command may change, is not imported ahead.

A variable counts as changed if its name is a constant of the command's own file, and that file does more with the
environment than to read it, or if a loaded module has a statement that sets or removes it. Names that are put together
at run time are not seen.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable

_NAMES_THE_ENVIRONMENT = (b"environ", b"putenv", b"unsetenv")
_CALLS = ("putenv", "unsetenv")
_READING = ("get", "copy", "items", "keys", "values", "__getitem__", "__contains__")


class Changes:
    """What the command's own file may change before it imports a module; nothing of a command without a source."""

    def __init__(self, source: bytes = b"", tree: ast.Module | None = None) -> None:
        """Take source and syntax tree of the file."""
        self.of_directory = b"chdir" in source
        self.variables: frozenset[str] = frozenset()
        if tree is not None and any(name in source for name in _NAMES_THE_ENVIRONMENT) and _may_write(tree):
            self.variables = frozenset(_constants(tree))


def _may_write(tree: ast.Module) -> bool:
    """Return whether a file may change the environment: it does more than read one variable, or all."""
    import ast

    read: set[ast.AST] = set()
    for node in ast.walk(tree):
        if (isinstance(node, ast.Attribute) and node.attr in _READING) or (
            isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
        ):
            read.add(node.value)
        elif isinstance(node, ast.Compare):
            read.update(node.comparators)
    return any(_name_of(node) in _CALLS or (_is_environment(node) and node not in read) for node in ast.walk(tree))


def _is_environment(node: ast.AST) -> bool:
    return _name_of(node) in ("environ", "environb")


def _name_of(node: ast.AST) -> str:
    import ast

    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.alias):
        return node.name if node.asname else ""
    return node.attr if isinstance(node, ast.Attribute) else ""


def _constants(tree: ast.Module) -> Iterable[str]:
    import ast

    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            yield node.value if isinstance(node.value, str) else node.value.decode("utf-8", "surrogateescape")
        elif isinstance(node, ast.keyword) and node.arg:  # of `os.environ.update(NAME="value")`
            yield node.arg


def written(sources: Iterable[bytes], names: set[str]) -> set[str]:
    """Return which of these variables a statement in one of these sources sets or removes."""
    import re

    found: set[str] = set()
    spelled = "|".join(map(re.escape, sorted(names))).encode()
    name = rb"""[bru]?["'](%s)["']""" % spelled
    changes = re.compile(
        rb"(?:environb?\[\s*%s\s*\]\s*=[^=]|del\s+[\w.]*environb?\[\s*%s|(?:putenv|unsetenv)\(\s*%s"
        rb"|environb?\.(?:setdefault|pop|__setitem__)\(\s*%s)" % (name, name, name, name)
    )
    for source in sources if names else ():
        if any(word in source for word in _NAMES_THE_ENVIRONMENT):
            for match in changes.finditer(source):
                found.update(group.decode() for group in match.groups() if group)
    return found
