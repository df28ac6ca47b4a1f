"""A program's subclass of a patched class of `threading` runs the standard library's code.

Such a subclass may use the private attributes of the class that it extends: the semaphore of billiard's pools takes
`_cond` and changes `_value`. A native object has no such parts. So the first subclass divides its base: from then on
each method of the base asks whether the object is the base's own, which is native, or a subclass's, for which the
standard library's function runs. Calls as `threading.Event.__init__(self)` are answered so too, as a replacement of the
class in `__bases__` would not. A program without a subclass pays nothing; with one, an object of the divided base
pays for a call of Python in each method.

Limit: a subclass is not noticed if another base's `__init_subclass__` comes first and does not pass the call on.

Invariant: all methods of one object run the same code, native or the standard library's, since its class decides.
"""

from functools import wraps
from types import CellType, FunctionType

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from typing import Any

NATIVE: "set[type]" = set()
"""The patched classes: their own objects are native."""

_TAKES_ANY = 0x04 | 0x08
"""The flags of code with ``*arguments`` or ``**keywords`` (`inspect.CO_VARARGS`, `inspect.CO_VARKEYWORDS`)."""

_OLD_NAMES = frozenset({"isSet", "notifyAll"})
"""Each of these warns its caller's caller, so no frame of ours may stand in between, and then calls the new name."""

_originals: "dict[str, Any]" = {}
_made: "dict[type, dict[str, Any]]" = {}
"""The patched classes' attributes as they were made: a program may have replaced one since."""

_divided: "set[type]" = set()


def remember(original: "Any") -> None:
    """Keep the standard library's class, before a patched class takes its name."""
    _originals.setdefault(original.__name__, original)


def watch(patched: "Any") -> None:
    """Divide the patched class as soon as a program derives a class from it."""

    def notice(cls: "Any", /, **keywords: object) -> None:
        for base in cls.__mro__:
            if base in NATIVE and base not in _divided:
                _divide(base)
        _above(patched, cls).__init_subclass__(**keywords)

    NATIVE.add(patched)
    _made[patched] = _own(patched)
    patched.__init_subclass__ = classmethod(notice)


def _divide(patched: "Any") -> None:
    import threading

    original: Any = _originals.get(patched.__name__) or getattr(threading, patched.__name__)
    theirs = _attributes(original.__mro__[:-1])
    ours = _attributes(base for base in patched.__mro__[:-1] if base not in NATIVE)
    for name in theirs.keys() | ours.keys():
        if _own(patched).get(name) is not _made[patched].get(name):
            continue  # the program has replaced it
        if name in theirs:
            divided = _shared(patched, name, theirs[name][1], ours.get(name, (None, None))[1])
        elif name in vars(object):
            continue
        else:
            divided = _only_native(patched, name, *ours[name])
        if divided is not None:
            setattr(patched, name, divided)
    _divided.add(patched)


def _above(kind: type, instance: object) -> "Any":
    return super(kind, instance)  # pyright: ignore[reportUnknownVariableType] -- any class may be next


def _own(kind: type) -> "dict[str, Any]":
    return dict(vars(kind))


def _attributes(line: "Any") -> "dict[str, tuple[Any, Any]]":
    """Return the attributes of classes, the first class's first: each one's class, and its value."""
    return {name: (base, value) for base in reversed(list(line)) for name, value in _own(base).items()}


def _shared(patched: "Any", name: str, theirs: "Any", native: "Any") -> "Any":
    """Return what stands for an attribute of the standard library's class; None if that needs no change."""
    if isinstance(theirs, FunctionType):
        function = _with_base(theirs, patched)
        is_theirs = native is None or name in _OLD_NAMES
        return function if is_theirs else _either(patched, name, native, function)
    if isinstance(theirs, property) and native is not None:
        return property(_either(patched, name, native.__get__, theirs.__get__))
    return None


def _only_native(patched: "Any", name: str, owner: type, native: "Any") -> "Any":
    """Return what stands for an attribute that the standard library's class lacks; None if that needs no change."""
    holder = next(base for base in patched.__mro__ if name in vars(base))
    if holder is not patched and holder in NATIVE:
        return None  # that class is divided too
    if name.startswith("__"):
        return _either(patched, name, native, _refusal(name, owner)) if callable(native) else None
    if holder is not patched and hasattr(native, "__set__"):
        return _Field(name, native)
    return _Hidden(owner, name, native)


def _either(patched: type, name: str, native: "Any", theirs: "Any") -> "Any":
    """Return a method that runs the native one for native objects.

    It has the parameters of the standard library's, since handing over any arguments takes longer than the rest of the
    call; except under another name (`__enter__` is `acquire` there), where the native method has parameters of its own.
    """
    make, code = _with_any, getattr(theirs, "__code__", None)
    if code is not None and theirs.__name__ == name and not (code.co_kwonlyargcount or code.co_flags & _TAKES_ANY):
        make = _BY_NUMBER.get(code.co_argcount, _with_any)
    either = make(patched, native, theirs)
    if code is not None and make is not _with_any:
        either.__code__ = either.__code__.replace(co_varnames=code.co_varnames[: code.co_argcount])
        either.__defaults__ = theirs.__defaults__
    return wraps(theirs)(either)


def _with_any(patched: type, native: "Any", theirs: "Any") -> "Any":
    def either(self: "Any", *arguments: "Any", **keywords: "Any") -> "Any":
        if type(self) is patched or type(self) in NATIVE:
            return native(self, *arguments, **keywords)
        return theirs(self, *arguments, **keywords)

    return either


def _with_none(patched: type, native: "Any", theirs: "Any") -> "Any":
    def either(self: "Any") -> "Any":
        if type(self) is patched or type(self) in NATIVE:
            return native(self)
        return theirs(self)

    return either


def _with_one(patched: type, native: "Any", theirs: "Any") -> "Any":
    def either(self: "Any", first: "Any") -> "Any":
        if type(self) is patched or type(self) in NATIVE:
            return native(self, first)
        return theirs(self, first)

    return either


def _with_two(patched: type, native: "Any", theirs: "Any") -> "Any":
    def either(self: "Any", first: "Any", second: "Any") -> "Any":
        if type(self) is patched or type(self) in NATIVE:
            return native(self, first, second)
        return theirs(self, first, second)

    return either


_BY_NUMBER: "dict[int, Any]" = {1: _with_none, 2: _with_one, 3: _with_two}
"""By the number of parameters, with `self`."""


def _refusal(name: str, owner: type) -> "Any":
    def refuse(self: "Any", *_arguments: "Any") -> "Any":
        kind, advice = type(self).__name__, f"derive it from unsnarl.{owner.__name__}"
        raise TypeError(f"{kind} has no {name}, as its base in threading has none; {advice}")

    return refuse


def _with_base(function: "Any", patched: "Any") -> "Any":
    """Return the function; if it calls `super()`, that finds the next patched class after this one."""
    if "__class__" not in function.__code__.co_freevars:
        return function
    line = patched.__mro__
    after = next((base for base in line[1:] if base in NATIVE), object)
    before = line[line.index(after) - 1]
    cells = [
        CellType(before) if name == "__class__" else cell
        for name, cell in zip(function.__code__.co_freevars, function.__closure__, strict=True)
    ]
    bound = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
    )
    bound.__kwdefaults__ = function.__kwdefaults__
    return wraps(function)(bound)


class _Hidden:
    """A name that only native objects have. For a subclass's object, another of its bases may have it."""

    __slots__ = ("_name", "_native", "_owner")

    def __init__(self, owner: "Any", name: str, native: "Any") -> None:
        self._owner, self._name, self._native = owner, name, native

    def __get__(self, instance: "Any", owner: "type | None" = None) -> "Any":
        if instance is None:
            return self._native
        if type(instance) in NATIVE:
            return self._native.__get__(instance, owner)
        return getattr(_above(self._owner, instance), self._name)


class _Field:
    """A field of the native object, and an ordinary attribute of a subclass's."""

    __slots__ = ("_name", "_native")

    def __init__(self, name: str, native: "Any") -> None:
        self._name, self._native = name, native

    def __get__(self, instance: "Any", owner: "type | None" = None) -> "Any":
        if instance is None:
            return self._native
        if type(instance) in NATIVE:
            return self._native.__get__(instance, owner)
        try:
            return instance.__dict__[self._name]
        except KeyError:
            raise AttributeError(f"{type(instance).__name__!r} object has no attribute {self._name!r}") from None

    def __set__(self, instance: "Any", value: object) -> None:
        if type(instance) in NATIVE:
            self._native.__set__(instance, value)
        else:
            instance.__dict__[self._name] = value

    def __delete__(self, instance: "Any") -> None:
        if type(instance) in NATIVE:
            self._native.__delete__(instance)
        else:
            del instance.__dict__[self._name]
