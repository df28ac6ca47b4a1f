"""Static check for quiet modules: modules whose body only binds names of its own.

Only a quiet module may be loaded later than it is imported: the program cannot observe the difference until it uses a
name of the module. A body is quiet if it imports, defines and assigns, and calls and decorates only with what the
lists below contain.

A name from a module outside these lists may be bound to another name, put into a list, or passed to ``typing``. An
attribute, item, operator or iteration on such a name runs code of that module, or reads a value that may change.
Annotations are ignored: they have no effect.

Invariant: a statement that is not known to be harmless makes the module not quiet. Nothing is imported or run.

Things that do not work: comparing the process before and after an import. A class that registers itself with its base,
or a handler added to another module's list, cannot be distinguished from ordinary objects.
"""

from __future__ import annotations

import ast
import builtins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_BUILTINS = frozenset(
    [
        "abs",
        "all",
        "any",
        "bool",
        "bytes",
        "bytearray",
        "chr",
        "classmethod",
        "complex",
        "dict",
        "divmod",
        "enumerate",
        "float",
        "frozenset",
        "getattr",
        "hasattr",
        "hash",
        "hex",
        "int",
        "isinstance",
        "issubclass",
        "len",
        "list",
        "max",
        "min",
        "object",
        "oct",
        "ord",
        "property",
        "range",
        "repr",
        "reversed",
        "round",
        "set",
        "slice",
        "sorted",
        "staticmethod",
        "str",
        "sum",
        "tuple",
        "type",
        "zip",
    ]
)
_CALLED = frozenset(
    [
        "abc.abstractmethod",
        "collections.OrderedDict",
        "collections.defaultdict",
        "collections.deque",
        "collections.namedtuple",
        "contextlib.asynccontextmanager",
        "contextlib.contextmanager",
        "contextvars.ContextVar",
        "dataclasses.dataclass",
        "dataclasses.field",
        "datetime.timedelta",
        "decimal.Decimal",
        "enum.auto",
        "functools.cache",
        "functools.cached_property",
        "functools.lru_cache",
        "functools.partial",
        "functools.partialmethod",
        "functools.singledispatch",
        "functools.total_ordering",
        "functools.wraps",
        "itertools.chain",
        "itertools.count",
        "enum.unique",
        "operator.attrgetter",
        "operator.itemgetter",
        "operator.methodcaller",
        "os.path.basename",
        "os.path.dirname",
        "os.path.join",
        "re.compile",
        "re.escape",
        "struct.Struct",
        "struct.calcsize",
        "textwrap.dedent",
        "threading.Lock",
        "threading.RLock",
        "threading.local",
        "types.MappingProxyType",
        "types.SimpleNamespace",
        "types.coroutine",
        "weakref.WeakKeyDictionary",
        "weakref.WeakValueDictionary",
        "_thread.allocate_lock",
    ]
)
_CALLED_OF = ("typing.", "typing_extensions.")
_BASES = frozenset(["abc.ABC", "enum.Enum", "enum.IntEnum", "enum.Flag", "enum.IntFlag", "enum.StrEnum"])
_BASES_OF = ("typing.", "typing_extensions.", "collections.abc.")
# Attributes that a body may read of two modules whose other attributes change while a program runs.
_READ_OF = {
    "sys": frozenset(
        [
            "byteorder",
            "flags",
            "hexversion",
            "implementation",
            "maxsize",
            "maxunicode",
            "platform",
            "version",
            "version_info",
        ]
    ),
    "os": frozenset(["altsep", "curdir", "devnull", "extsep", "linesep", "name", "pardir", "path", "pathsep", "sep"]),
}
_LISTED = (
    frozenset(name.partition(".")[0] for name in _CALLED | _BASES)
    | _READ_OF.keys()
    | frozenset(["__future__", "errno", "keyword", "math", "signal", "stat", "string", "typing", "typing_extensions"])
)
"""Modules whose attributes may be read: they have the same value at any time, and reading runs no code."""
_KEEPERS = frozenset(["dataclasses.field", "functools.partial", "functools.partialmethod"]) | {
    f"{module}.{name}"
    for module in ("typing", "typing_extensions")
    for name in ("NamedTuple", "NewType", "ParamSpec", "TypeVar", "cast")
}
"""Callables that only store their arguments."""
_GENERIC = frozenset(["dict", "frozenset", "list", "set", "tuple", "type"])
# Methods that creating a class, deriving from it or indexing it calls.
_HOOKS = frozenset(["__class_getitem__", "__init_subclass__", "__mro_entries__", "__prepare__", "__set_name__"])
_MAKERS = frozenset(["__init__", "__new__", "_generate_next_value_", "_missing_"])
"""Methods that creating an enumeration calls, for each of its members."""
_METHODS = frozenset(["add", "append", "extend", "insert", "remove", "reverse", "setdefault", "sort", "update"])
_ACCESSORS = ("setter", "getter", "deleter")
# Names that the import system binds, or reads from a module.
_RESERVED = frozenset(
    [
        "__path__",
        "__spec__",
        "__name__",
        "__file__",
        "__loader__",
        "__package__",
        "__cached__",
        "__class__",
        "__dict__",
        "__getattr__",
        "__dir__",
    ]
)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Expressions that create a new object, to which no other code has a reference.
_NEW = (ast.Constant, ast.JoinedStr, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
_CONTAINERS = frozenset(["bytearray", "dict", "frozenset", "list", "set", "tuple"])
_SCOPES = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef)


def is_quiet(tree: ast.Module) -> bool:
    """Return whether running this module's body only binds names of its own."""
    return _Body(tree).is_quiet()


def imported(tree: ast.Module, name: str, *, is_package: bool) -> set[str]:
    """Return the modules that a body may import, with their packages; imports inside functions are not included."""
    return {one for node in _executed(tree) for one in _asked_for(node, name, is_package=is_package)}


def guarded(tree: ast.Module, name: str, *, is_package: bool) -> set[str]:
    """Return the modules that are imported inside ``try`` or ``with``, where a failure may be handled."""
    tries = (node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.TryStar | ast.With))
    inside = (node for one in tries for statement in one.body for node in ast.walk(statement))
    return {one for node in inside for one in _asked_for(node, name, is_package=is_package)}


def taken(tree: ast.Module, name: str, *, is_package: bool) -> set[tuple[str, str]]:
    """Return the (module, name) pairs that a body takes by ``from … import …``, where the name's value may change."""
    nodes = [node for node in _executed(tree) if isinstance(node, ast.ImportFrom)]
    pairs = {(_base(node, name, is_package=is_package), alias.name) for node in nodes for alias in node.names}
    return {(base, one) for base, one in pairs if base.partition(".")[0] not in _LISTED}


def bound(tree: ast.Module) -> tuple[set[str], set[str]]:
    """Return a module's names: those bound only by definitions and imports, and those also bound otherwise.

    The latter may have a different value later.
    """
    once: set[str] = set()
    otherwise = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
    for node in _outermost(tree):
        if isinstance(node, _DEFINITIONS):
            once.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            once |= _imports_of(node).keys()
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            otherwise.add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            otherwise.add(node.name)
    return once - otherwise, otherwise


def _outermost(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes below one, without the bodies of functions and classes."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        found.append(child)
        if not isinstance(child, (*_SCOPES, ast.ClassDef)):
            found += _outermost(child)
    return found


def _executed(tree: ast.AST) -> list[ast.AST]:
    """Return the nodes below one, without the bodies of functions."""
    found: list[ast.AST] = []
    for child in ast.iter_child_nodes(tree):
        found.append(child)
        if not isinstance(child, _SCOPES):
            found += _executed(child)
    return found


def _asked_for(node: ast.AST, name: str, *, is_package: bool) -> list[str]:
    if isinstance(node, ast.Import):
        return [part for alias in node.names for part in _prefixes(alias.name)]
    if not isinstance(node, ast.ImportFrom):
        return []
    base = _base(node, name, is_package=is_package)
    return [*_prefixes(base), *(f"{base}.{alias.name}" for alias in node.names)]


def _base(node: ast.ImportFrom, name: str, *, is_package: bool) -> str:
    """Return the full name of the module that names are taken from."""
    base = node.module or ""
    if not node.level:
        return base
    parts = name.split(".") if is_package else name.split(".")[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, base] if base else parts)


def _prefixes(dotted: str) -> list[str]:
    parts = dotted.split(".")
    return [".".join(parts[: at + 1]) for at in range(len(parts))]


def _imports_of(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """Return the names an import binds, each with the dotted name it refers to."""
    if isinstance(node, ast.ImportFrom):
        base = f"{'.' * node.level}{node.module or ''}"
        return {alias.asname or alias.name: f"{base}.{alias.name}" for alias in node.names}
    plain = {alias.name.partition(".")[0] for alias in node.names if not alias.asname}
    return {name: name for name in plain} | {alias.asname: alias.name for alias in node.names if alias.asname}


def _mentions(node: ast.AST, names: set[str]) -> bool:
    nodes = [node, *([] if isinstance(node, _SCOPES) else _executed(node))]
    return any(isinstance(one, ast.Name) and one.id in names for one in nodes)


def _is_new_container(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CONTAINERS


def _names(targets: Sequence[ast.expr]) -> set[str]:
    nodes = (node for target in targets for node in ast.walk(target))
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


class _Body:
    """One module's body, with the origins of its names."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree = tree
        self._origins: dict[str, str] = {}
        self._own: set[str] = set()
        self._foreign: set[str] = set()  # may refer to objects that other code refers to
        for node in _executed(tree):
            self._bind(node)
        self._own -= self._origins.keys()
        self._made = self._own - self._foreign
        self._others = self._names_for_others()
        self._has_enums = any(origin.partition(".")[0] == "enum" for origin in self._origins.values())
        self._depth = 0  # in class bodies

    def _names_for_others(self) -> set[str]:
        """Return the names that may refer to an object of a module that is not listed."""
        found = {name for name, origin in self._origins.items() if origin.partition(".")[0] not in _LISTED}
        before = -1
        while before != len(found):
            before = len(found)
            for node in _executed(self._tree):
                value = getattr(node, "iter" if isinstance(node, ast.For | ast.comprehension) else "value", None)
                if isinstance(value, ast.AST) and _mentions(value, found):
                    targets = getattr(node, "targets", [getattr(node, "target", None)])
                    found |= _names([one for one in targets if one is not None])
        return found

    def _bind(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._origins |= _imports_of(node)
        elif isinstance(node, _DEFINITIONS):
            self._own.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            is_made = node.value is None or isinstance(node.value, _NEW) or _is_new_container(node.value)
            if not is_made or any(isinstance(target, ast.Tuple | ast.List) for target in targets):
                self._foreign.update(_names(targets))
        elif isinstance(node, ast.For | ast.NamedExpr):
            self._foreign.update(_names([node.target]))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            self._own.add(node.id)

    def is_quiet(self) -> bool:
        """Return whether all statements are harmless, and no reserved name is bound."""
        return not (self._own | self._origins.keys()) & _RESERVED and self._are_quiet(self._tree.body)

    def _are_quiet(self, statements: list[ast.stmt]) -> bool:
        return all(self._is_harmless(statement) for statement in statements)

    def _is_harmless(self, node: ast.stmt) -> bool:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self._is_plain_function(node)
        if isinstance(node, ast.ClassDef):
            return self._is_plain_class(node)
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete):
            return self._is_own_assignment(node)
        if isinstance(node, ast.If | ast.For | ast.Try):
            return self._is_harmless_block(node)
        if isinstance(node, ast.Import | ast.ImportFrom):
            return all(alias.name != "*" for alias in node.names)
        return isinstance(node, ast.Expr | ast.Assert | ast.Pass | ast.Break | ast.Continue) and self._is_plain(node)

    def _is_harmless_block(self, node: ast.If | ast.For | ast.Try) -> bool:
        parts = [node.body, node.orelse]
        if isinstance(node, ast.Try):
            parts += [node.finalbody, *(one.body for one in node.handlers)]
            heads = [one.type for one in node.handlers if one.type is not None]
        else:
            heads = [node.test] if isinstance(node, ast.If) else [node.iter]
        is_own = not isinstance(node, ast.For) or self._is_own(node.target)
        return is_own and all(map(self._is_plain, heads)) and all(map(self._are_quiet, parts))

    def _is_plain_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        defaults = [one for one in (*node.args.defaults, *node.args.kw_defaults) if one is not None]
        return all(map(self._is_decorator, node.decorator_list)) and all(map(self._is_kept, defaults))

    def _is_decorator(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute) and node.attr in _ACCESSORS:
            return isinstance(node.value, ast.Name) and node.value.id in self._own
        return self._is_plain(node) if isinstance(node, ast.Call) else self._may_be_called(node)

    def _is_plain_class(self, node: ast.ClassDef) -> bool:
        head = all(map(self._is_decorator, node.decorator_list)) and all(map(self._is_base, node.bases))
        if not head or node.keywords or self._makes_with_own_code(node):
            return False
        self._depth += 1
        is_quiet = self._are_quiet(node.body)
        self._depth -= 1
        return is_quiet

    def _makes_with_own_code(self, node: ast.ClassDef) -> bool:
        """Return whether creating this class, or a class derived from it, runs code that the module defines."""
        inside = [one for statement in node.body for one in (statement, *_executed(statement))]
        bound = {one.name for one in inside if isinstance(one, _DEFINITIONS)}
        bound |= {one.id for one in inside if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
        is_mixed = len(node.bases) > 1 and any(isinstance(one, ast.Name) and one.id in self._own for one in node.bases)
        is_made = self._has_enums and bool(node.bases) and (is_mixed or bool(bound & _MAKERS))
        return is_made or bool(bound & _HOOKS)

    def _is_base(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Subscript):
            return self._is_base(node.value) and self._is_kept(node.slice)
        if isinstance(node, ast.Name) and node.id in self._own:
            return node.id not in self._others  # a class of this module: its bases are checked where it is defined
        name = self._origin(node)
        is_builtin = isinstance(node, ast.Name) and name == node.id and isinstance(getattr(builtins, name, None), type)
        return is_builtin or name in _BASES or name.startswith(_BASES_OF)

    def _is_own_assignment(self, node: ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Delete) -> bool:
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and node.target.id not in self._made:
            return False  # it may change a list of another module
        values = [] if isinstance(node, ast.Delete) or node.value is None else [node.value]
        is_taken_apart = isinstance(node, ast.AugAssign) or any(
            isinstance(one, ast.Tuple | ast.List) for one in targets
        )
        # Creating a class calls __set_name__ of the values in its body.
        is_kept = self._is_plain if self._depth or is_taken_apart else self._is_kept
        return all(map(self._is_own, targets)) and all(map(is_kept, values))

    def _is_own(self, target: ast.expr) -> bool:
        """Return whether assigning to this changes only objects that the module itself has created."""
        if isinstance(target, ast.Name):
            return True
        if isinstance(target, ast.Tuple | ast.List):
            return all(map(self._is_own, target.elts))
        if isinstance(target, ast.Starred):
            return self._is_own(target.value)
        inner = target.value if isinstance(target, ast.Attribute | ast.Subscript) else None
        is_own = isinstance(inner, ast.Name) and inner.id in self._made
        return is_own and (not isinstance(target, ast.Subscript) or self._is_plain(target.slice))

    def _is_kept(self, node: ast.expr) -> bool:
        """Return whether this is plain, apart from foreign names that it binds, lists or passes to ``typing``."""
        if isinstance(node, ast.Name):
            return self._may_be_read(node)
        if isinstance(node, ast.List | ast.Tuple):
            return all(map(self._is_kept, node.elts))
        if isinstance(node, ast.Dict):
            return all(key and self._is_plain(key) for key in node.keys) and all(map(self._is_kept, node.values))
        if isinstance(node, ast.Subscript) and self._is_generic(node.value):
            return self._is_kept(node.slice)
        if isinstance(node, ast.Call) and self._is_keeper(node.func):
            return all(map(self._is_kept, [*node.args, *(one.value for one in node.keywords)]))
        return self._is_plain(node)

    def _is_generic(self, node: ast.expr) -> bool:
        name = self._origin(node)
        return name.startswith(_BASES_OF) or (name in _GENERIC and name not in self._own)

    def _is_keeper(self, node: ast.expr) -> bool:
        return self._origin(node) in _KEEPERS

    def _is_plain(self, tree: ast.AST) -> bool:
        """Return whether evaluating this only makes permitted calls, and reads nothing that changes."""
        if isinstance(tree, _SCOPES):
            return True
        if isinstance(tree, ast.Name) and tree.id in self._others:
            return False
        if isinstance(tree, ast.Call) and not self._is_quiet_call(tree):
            return False
        if isinstance(tree, ast.Attribute | ast.Name) and not self._may_be_read(tree):
            return False
        if isinstance(tree, ast.Await | ast.Yield | ast.YieldFrom):
            return False
        return all(map(self._is_plain, ast.iter_child_nodes(tree)))

    def _is_quiet_call(self, node: ast.Call) -> bool:
        method = node.func
        if isinstance(method, ast.Attribute):
            if isinstance(method.value, ast.Constant | ast.JoinedStr):
                return True
            if isinstance(method.value, ast.Name) and method.value.id in self._made and method.attr in _METHODS:
                return True
        # The key of a sort is called; `type` with more arguments creates a class.
        if any(keyword.arg == "key" for keyword in node.keywords) or (self._origin(method) == "type" and node.args[1:]):
            return False
        return self._may_be_called(method)

    def _may_be_called(self, node: ast.expr) -> bool:
        name = self._origin(node)
        if isinstance(node, ast.Name) and name == node.id:
            return name in _BUILTINS and name not in self._own
        return name in _CALLED or name.startswith(_CALLED_OF)

    def _may_be_read(self, node: ast.Attribute | ast.Name) -> bool:
        module, _, name = self._origin(node).partition(".")
        return module not in _READ_OF or not name or name.partition(".")[0] in _READ_OF[module]

    def _origin(self, node: ast.AST) -> str:
        """Return the dotted name that a node refers to: the one it was imported by, or its own."""
        if isinstance(node, ast.Name):
            return self._origins.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            return f"{self._origin(node.value)}.{node.attr}"
        return ""
