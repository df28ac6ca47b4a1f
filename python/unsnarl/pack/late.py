"""Modules that are loaded when first touched, not when imported.

A late module stands in ``sys.modules`` from its import on, with the ``__spec__``,
``__file__`` and the like of any other. Its body runs when anything else is asked of it
or set in it, ``__dict__`` included; ``from it import name`` asks. From then on it is an
ordinary module: the same object, of the ordinary class.

Invariant: the body runs once, under the import lock of the module's name, so other
threads that touch it wait as they would for an import. If it raises, the exception goes
to whoever touched the module, which is as it was before: the next touch tries again.

Things that do not work: ``importlib.util.LazyLoader`` (a second ``import`` of a module asks
for its ``__spec__``, which loads it; its lock of its own can meet an import lock crosswise);
packages (the import of a submodule must find the package's body run, and may have been done by it).
"""

import _frozen_importlib
import sys

from .finder import PackLoader, unseen

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any
else:
    ModuleType = type(sys)  # `types` may be unknown to the program

_IMPORT: "Any" = _frozen_importlib  # whose locks are private, and have no types
# What the import system, and those who look through sys.modules, ask a module for.
_KNOWN = frozenset(["__name__", "__spec__", "__loader__", "__package__", "__file__", "__cached__", "__path__"])
_BEFORE = _KNOWN | {"__doc__", "__builtins__"}
_LOADING = "loading"


class LateModule(ModuleType):
    """A module whose body has not run yet."""

    @unseen
    def __getattribute__(self, name: str) -> "Any":
        """Return what is known without the body; else run it first."""
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
        """Return what an ordinary module says of itself."""
        return ModuleType.__repr__(self)


@unseen
def load(module: ModuleType) -> None:
    """Run the body of a module if that has not been done.

    A thread that waits for another to do it, while that one waits for it, goes on with what there is,
    as it would in a circular import.
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
    """The loader of modules that a pack was told to load late."""

    @unseen
    def exec_module(self, module: ModuleType) -> None:
        """Put the body off; run it if the module has been loaded before (``importlib.reload``), or has to be by now."""
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
