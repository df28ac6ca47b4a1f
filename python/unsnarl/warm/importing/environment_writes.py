"""Which variables the statements of a file set or remove, as far as its syntax tells.

A statement has a name if that is a constant, or a variable that the file binds to nothing but constants. Any other name
is put together at run time: ``os.environ[key] = value``, ``os.environ.update(values)``, ``load_dotenv()``.

Must never run a line of the file. Invariant: what may be another name than the constants counts as any name.
"""

from __future__ import annotations

import ast
import re
from collections import Counter

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    _Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

# Spellings of a file that may set a variable: a quick look, before it is parsed.
_SUSPECT = (
    rb"environb?\s*(?:\[(?:[^\]]*|[^\n]*)\]\s*[=,+]|\|=|as\b|\.(?:update|setdefault|pop|popitem|clear|__\w+item__)\b)"
    rb"|del\s[^\n]*environ|\b(?:put|unset)env\b|=[^=\n]*environb?\s*(?:[,;)#\n]|$|\s(?:or|if|else)\b)|dotenv|read_env"
)
_WITH_A_NAME = ("setdefault", "pop", "__setitem__", "__delitem__")
_WHOLE = ("clear", "popitem")
_IN_C = ("putenv", "unsetenv")
_ENVIRONMENTS = ("environ", "environb")
_READING = ("get", "copy", "items", "keys", "values", "__getitem__", "__contains__")
# Functions that read variables from a file into the environment: of dotenv, django-environ, environs, envparse.
_OF_FILES = ("read_env", "read_envfile", "load_env", "load_envs", "loadenv")
_ONLY_READING = ("find_dotenv", "dotenv_values", "get_dotenv")
# Functions that only read the environment that they are given.
_READERS = frozenset(
    [
        "any", "all", "bool", "call", "check_call", "check_output", "ChainMap", "copy", "deepcopy", "dict", "dumps",
        "enumerate", "execle", "execlpe", "execve", "execvpe", "format", "format_map", "get", "getattr", "hasattr",
        "isinstance", "items", "iter", "len", "list", "MappingProxyType", "max", "min", "Popen", "posix_spawn",
        "posix_spawnp", "print", "pprint", "repr", "run", "safe_substitute", "set", "sorted", "spawnle", "spawnlpe",
        "spawnve", "spawnvpe", "str", "substitute", "tuple", "update",
    ]
)  # fmt: skip


class Writes:
    """What a file sets or removes: variables by name, and whether some by a name that is put together at run time."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.are_any = False
        # Whether a function is called that reads variables from a file.
        self.are_of_file = False

    def add(self, other: Writes, *, is_installed: bool) -> None:
        """Add what another file does; of an installed package only names and what is read from a file count."""
        self.names |= other.names
        self.are_of_file = self.are_of_file or other.are_of_file
        self.are_any = self.are_any or (other.are_of_file if is_installed else other.are_any)


def may_write(source: bytes, parts: Iterable[str] | None = None) -> bool:
    """Return whether a file could set a variable: a quick look.

    With ``parts``: one whose name has one of these parts, as the file spells it, or one that is read from a file.
    """
    if b"env" not in source or re.search(_SUSPECT, source) is None:
        return False
    return parts is None or any(
        part.encode("utf-8", "surrogateescape") in source for part in (*parts, "dotenv", "read_env")
    )


def of(tree: ast.Module, *, is_own: bool = False, is_run: bool = False) -> Writes:
    """Return what the statements of a file do to the environment.

    ``is_own``: the file may hand the environment to a function that is not known; and if it does more than read, each
    of its constants may be the name of a variable.
    ``is_run``: the body of the file has been watched, so that names put together there are known.
    """
    file, writes = _File(tree), Writes()
    later = _inside(file.nodes, lambda _function: True) if is_run else None
    passing = _inside(file.nodes, _is_of_context) if not is_own else set[int]()
    for node in file.nodes:
        names = file.names_written(node)
        if names is None and (later is None or id(node) in later) and id(node) not in passing:
            writes.are_any = True
            writes.are_of_file = writes.are_of_file or file.reads_a_file(node)
        writes.names |= names or set()
    if is_own:
        writes.are_any = writes.are_any or file.hands_on()
        writes.names |= file.texts() if file.does_more_than_read() else set()
    return writes


def _inside(nodes: list[ast.AST], is_wanted: Callable[[_Function], bool]) -> set[int]:
    """Return the nodes in functions of a kind."""
    functions = [n for n in nodes if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    return {id(inner) for function in filter(is_wanted, functions) for inner in ast.walk(function)}


def _is_of_context(function: _Function) -> bool:
    """Return whether a function is of a context manager, which undoes what it has set (``requests`` has one)."""
    if isinstance(function, ast.Lambda):
        return False
    is_made = any(identifier(one).endswith("contextmanager") for one in function.decorator_list)
    return is_made or function.name in ("__enter__", "__exit__", "__aenter__", "__aexit__")


class _File:
    """A file's tree, with the names that it has for the environment, and its constants."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = [*ast.walk(tree)]
        self._modules: set[str] = set()
        self._environments: set[str] = set()
        # Attributes are apart: `self.environ = os.environ` says nothing of a variable of this name.
        self._attributes: set[str] = set()
        self._loaders: set[str] = set()
        for node in self.nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self._take_import(node)
        for _ in range(2):  # of another name, too
            for target in [target for node in self.nodes for target in self._aliases(node)]:
                (self._attributes if isinstance(target, ast.Attribute) else self._environments).add(identifier(target))
        self._attributes -= {identifier(target) for node in self.nodes for target in _bound_to_own(node)}
        self._constants = _constants(self.nodes)

    def _take_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for one in node.names:
            name = one.asname or one.name.partition(".")[0]
            self._modules.add(name)
            if isinstance(node, ast.ImportFrom) and one.name.lower() in _ENVIRONMENTS:
                self._environments.add(name)
            if isinstance(node, ast.ImportFrom) and _reads_a_file(one.name):
                self._loaders.add(name)

    def _aliases(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the targets to which a statement binds the environment."""
        if isinstance(node, ast.Assign) and self._may_be(node.value):
            yield from filter(identifier, node.targets)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None and self._may_be(node.value):
            yield from filter(identifier, [node.target])
        elif isinstance(node, ast.arguments):
            positional = [*node.posonlyargs, *node.args]
            pairs = [*zip(reversed(positional), reversed(node.defaults), strict=False)]
            pairs += [(one, value) for one, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value]
            yield from (one for one, value in pairs if self._may_be(value))

    def _may_be(self, node: ast.expr) -> bool:
        if isinstance(node, ast.BoolOp):
            return any(map(self._may_be, node.values))
        if isinstance(node, ast.IfExp):
            return self._may_be(node.body) or self._may_be(node.orelse)
        return self._is_environment(node)

    def _is_environment(self, node: ast.AST) -> bool:
        name = identifier(node)
        if name in self._environments or (isinstance(node, ast.Attribute) and name in self._attributes):
            return True
        is_of_module = isinstance(node, ast.Attribute) and identifier(node.value) in self._modules
        return is_of_module and name in _ENVIRONMENTS

    def names_written(self, node: ast.AST) -> set[str] | None:
        """Return which variables a node sets or removes; None if that is known at run time only."""
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            return self._judged(node.value, [node.slice])
        if isinstance(node, ast.AugAssign) and identifier(node.target):
            return self._judged(node.target, self._keys(node.value))
        return self._called(node) if isinstance(node, ast.Call) else set()

    def _called(self, node: ast.Call) -> set[str] | None:
        name = identifier(node.func)
        if name in _IN_C:
            return self._known(node.args[0]) if node.args else None
        if self.reads_a_file(node):
            return None
        if not isinstance(node.func, ast.Attribute):
            return set()
        base = node.func.value
        if name in _WITH_A_NAME:
            return self._judged(base, node.args[:1] or [None])
        if name == "update":
            given = [key for one in node.args for key in self._keys(one)]
            named = {one.arg for one in node.keywords if one.arg}
            unnamed = [None for one in node.keywords if not one.arg]
            found = self._judged(base, [*given, *unnamed])
            is_it = identifier(base) in _ENVIRONMENTS or self._is_environment(base)
            return None if found is None else found | (named if is_it else set())
        return self._judged(base, [None]) if name in _WHOLE else set()

    def reads_a_file(self, node: ast.AST) -> bool:
        """Return whether a node calls a function that reads variables from a file."""
        if not isinstance(node, ast.Call):
            return False
        name = identifier(node.func)
        return _reads_a_file(name) or (isinstance(node.func, ast.Name) and name in self._loaders)

    def _judged(self, base: ast.AST, keys: Iterable[ast.expr | None]) -> set[str] | None:
        """Return the names of a write to ``base``; those put together count only if that is surely the environment."""
        is_sure = self._is_environment(base)
        if not is_sure and identifier(base).lower() not in _ENVIRONMENTS:
            return set()
        found: set[str] = set()
        for key in keys:
            names = None if key is None else self._known(key)
            if names is None and is_sure:
                return None
            found |= names or set()
        return found

    def _known(self, key: ast.expr) -> set[str] | None:
        if isinstance(key, ast.Constant) and isinstance(key.value, (str, bytes)):
            return {text_of(key.value)}
        return self._constants.get(key.id) if isinstance(key, ast.Name) else None

    def _keys(self, node: ast.expr) -> list[ast.expr | None]:
        if isinstance(node, ast.Dict):
            return list(node.keys)
        if isinstance(node, ast.Call) and identifier(node.func) == "dict" and not node.args:
            return [ast.Constant(one.arg) if one.arg else None for one in node.keywords]
        return [None]

    def hands_on(self) -> bool:
        """Return whether the file hands the environment to a function that may change it, or replaces it."""
        for node in self.nodes:
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and self._is_environment(node):
                return True
            if isinstance(node, ast.Call) and not _only_reads(node.func):
                given = [*node.args, *(one.value for one in node.keywords if one.arg not in ("env", "environ"))]
                if any(self._is_environment(one) or _is_its_name(one) for one in given):
                    return True
        return False

    def does_more_than_read(self) -> bool:
        """Return whether the file may change the environment: it does more than read one variable, or all."""
        read: set[ast.AST] = set()
        for node in self.nodes:
            if (isinstance(node, ast.Attribute) and node.attr in _READING) or (
                isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)
            ):
                read.add(node.value)
            elif isinstance(node, ast.Compare):
                read.update(node.comparators)
        return any(
            _full_name(node) in _IN_C or (_full_name(node) in _ENVIRONMENTS and node not in read) for node in self.nodes
        )

    def texts(self) -> set[str]:
        """Return the constants of the file, and the names of arguments (``os.environ.update(NAME="value")``)."""
        values = (node.value for node in self.nodes if isinstance(node, ast.Constant))
        found = {text_of(value) for value in values if isinstance(value, (str, bytes))}
        return found | {node.arg for node in self.nodes if isinstance(node, ast.keyword) and node.arg}


def _full_name(node: ast.AST) -> str:
    """Return the last name of an expression, or what an import gives another name."""
    if isinstance(node, ast.alias):
        return node.name if node.asname else ""
    return identifier(node)


def _only_reads(function: ast.expr) -> bool:
    name = identifier(function)
    return name in _READERS and (name != "dict" or isinstance(function, ast.Name))  # not `mock.patch.dict`


def _is_its_name(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == "os.environ"


def _reads_a_file(name: str) -> bool:
    lower = name.lower()
    return lower in _OF_FILES or (lower.endswith(("dotenv", "dot_env")) and lower not in (*_ONLY_READING, "dotenv"))


def identifier(node: ast.AST) -> str:
    """Return the last name of an expression or of an argument, or nothing."""
    if isinstance(node, (ast.Name, ast.arg)):
        return node.id if isinstance(node, ast.Name) else node.arg
    return node.attr if isinstance(node, ast.Attribute) else ""


def text_of(value: str | bytes) -> str:
    """Return a name as a text."""
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def _bound_to_own(node: ast.AST) -> list[ast.expr]:
    """Return the targets that a statement binds to a new dictionary: these are the environment in some cases only."""
    is_new = isinstance(node, ast.Assign) and isinstance(node.value, (ast.Dict, ast.DictComp))
    return node.targets if is_new and isinstance(node, ast.Assign) else []


def _constants(nodes: list[ast.AST]) -> dict[str, set[str]]:
    """Return the variables that a file binds to nothing but constants, or to each of some constants in turn."""
    bound: Counter[str] = Counter()
    found: dict[str, list[set[str]]] = {}
    for node in nodes:
        bound[_bound_by(node)] += 1
        targets, texts = _texts_bound(node)
        for target in targets:
            found.setdefault(identifier(target), []).append(texts)
    return {name: set().union(*each) for name, each in found.items() if name and bound[name] == len(each)}


def _bound_by(node: ast.AST) -> str:
    """Return the variable that a node binds, or nothing."""
    if isinstance(node, ast.Name):
        return "" if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.alias):
        return node.asname or node.name
    return (node.name or "") if isinstance(node, (ast.MatchAs, ast.MatchStar, ast.ExceptHandler)) else ""


def _texts_bound(node: ast.AST) -> tuple[list[ast.expr], set[str]]:
    """Return the targets that a node binds to constant texts, and these; none if it may bind another value."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        values = [node.value]
        targets: list[ast.expr] = [*node.targets] if isinstance(node, ast.Assign) else [node.target]
    elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, (ast.Tuple, ast.List, ast.Set)):
        values, targets = [*node.iter.elts], [node.target]
    else:
        return [], set()
    constants = [one.value for one in values if isinstance(one, ast.Constant)]
    texts = {text_of(one) for one in constants if isinstance(one, (str, bytes))}
    return (targets, texts) if len(constants) == len(values) else ([], set())
