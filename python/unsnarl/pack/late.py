"""Late modules: their body runs on first use, not on import.

A late module is in ``sys.modules`` from its import on, with ``__spec__``, ``__file__`` and the other import
attributes. Its body runs when any other attribute is read or set, ``__dict__`` included; ``from module import name``
reads one. Afterwards it is an ordinary module: the same object, of the ordinary class.

Invariant: the body runs once, under the import lock of the module's name, so other threads that use the module wait as
for an import. If the body raises, the code that used the module gets the exception and the module is restored to its
state before; the next use runs the body again.

Things that do not work:

- ``importlib.util.LazyLoader``: a second ``import`` of the module reads ``__spec__``, which loads it. Its own lock can
  deadlock with an import lock.
- Late packages: the import of a submodule needs the package's body to have run, and the body may import the submodule.
"""

import _frozen_importlib
import sys

from .finder import PackLoader, unseen

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)  # the program may not have imported `types`

_IMPORT: "Any" = _frozen_importlib  # its locks are private and have no types
# Attributes that the import system, and code that scans sys.modules, read from a module.
_KNOWN = frozenset(["__name__", "__spec__", "__loader__", "__package__", "__file__", "__cached__", "__path__"])
_BEFORE = _KNOWN | {"__doc__", "__builtins__"}
_LOADING = "loading"


class LateModule(ModuleType):
    """A module whose body has not run yet."""

    @unseen
    def __getattribute__(self, name: str) -> "Any":
        """Return import attributes immediately; run the body before any other."""
        if name not in _KNOWN:
            load(self)
        return ModuleType.__getattribute__(self, name)

    @unseen
    def __setattr__(self, name: str, value: object) -> None:
        """Run the body, then set."""
        load(self)
        ModuleType.__setattr__(self, name, value)

    @unseen
    def __delattr__(self, name: str) -> None:
        """Run the body, then delete."""
        load(self)
        ModuleType.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        """Run the body, then list."""
        load(self)
        return sorted(self.__dict__)

    def __repr__(self) -> str:
        """Return the text of an ordinary module."""
        return ModuleType.__repr__(self)


@unseen
def load(module: ModuleType) -> None:
    """Run the body of a module unless it has run.

    If two threads wait for each other's modules, one of them continues with a partly initialised module, as in a
    circular import.
    """
    spec: Any = ModuleType.__getattribute__(module, "__spec__")
    lock: Any = _IMPORT._get_module_lock(spec.name)
    try:
        lock.acquire()
    except _IMPORT._DeadlockError:
        return
    try:
        if type(module) is LateModule and spec.loader_state != _LOADING:
            _run(module, spec)
    finally:
        lock.release()


@unseen
def _run(module: ModuleType, spec: "Any") -> None:
    names: dict[str, object] = ModuleType.__getattribute__(module, "__dict__")
    before = dict(names)
    spec.loader_state = _LOADING
    spec._initializing = True
    try:
        spec.loader.run(module)
        object.__setattr__(module, "__class__", ModuleType)
    except BaseException:
        names.clear()
        names.update(before)
        raise
    finally:
        spec.loader_state = None
        spec._initializing = False


class LateLoader(PackLoader):
    """The loader of late modules."""

    @unseen
    def exec_module(self, module: ModuleType) -> None:
        """Defer the body of a new module; run it if the module was loaded before (``importlib.reload``)."""
        if type(module) is ModuleType and module.__dict__.keys() <= _BEFORE:
            object.__setattr__(module, "__class__", LateModule)
            return
        if type(module) is LateModule:
            load(module)
        self.run(module)

    @unseen
    def run(self, module: ModuleType) -> None:
        """Run the body."""
        super().exec_module(module)
