"""Notes what a run changes that an import may read or keep: variables, the directory, functions of the library.

A change of what an import has read too early is reported at once (:mod:`..changed`): the run may be killed, or become
another program. All others are reported at its end.

Invariant: a variable reads, and is set and removed, as in a plain run; nothing is reported by a forked process.
"""

from __future__ import annotations

import os
import sys

from .. import changed
from ..importing import bodies, library

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .inherited import Inherited

# What stands for no module's body: the program's own file, and code that is called from C.
_OF_THE_PROGRAM = ("__main__", "it")


class Environment(dict[bytes, bytes]):
    """The dictionary beneath ``os.environ`` and ``os.environb``.

    These two set variables one by one, by the methods below. Code that calls another method of the dictionary itself
    (``os.environ._data.pop(name)``) changes no variable of the process, and is not noted.
    """

    def __init__(self, data: dict[bytes, bytes], note: Callable[[bytes], None]) -> None:
        super().__init__(data)
        self._note = note

    def __setitem__(self, name: bytes, value: bytes) -> None:
        """Set a variable; another value than before is noted."""
        if self.get(name) != value:
            self._note(name)
        super().__setitem__(name, value)

    def __delitem__(self, name: bytes) -> None:
        """Remove a variable."""
        if name in self:
            self._note(name)
        super().__delitem__(name)

    def clear(self) -> None:
        """Remove all variables (``os.reload_environ``)."""
        for name in [*self]:
            self._note(name)
        super().clear()

    def update(self, *given: Any, **named: Any) -> None:
        """Set several variables."""
        values: Any = dict(*given, **named)
        for name, value in values.items():
            self[name] = value

    def __reduce_ex__(self, protocol: Any, /) -> Any:
        """Be copied, and pickled, as the plain dictionary."""
        return dict, (dict(self),)


class RunChanges:
    """What one run changes."""

    def __init__(self, inherited: Inherited) -> None:
        self._stem, self._late, self._known = inherited.record, inherited.imported.late, inherited.imported.changed
        self._pid, self._uid = os.getpid(), os.geteuid()
        # Whether there is a report, if only of a run that has changed nothing.
        self._is_observed = inherited.imported.is_observed
        self._functions, self._is_surveyed = inherited.imported.functions, inherited.is_surveyed
        self._directory, self._modules = _identity(), frozenset(sys.modules)
        self._lines: set[str] = set()
        self._noted: set[bytes] = set()

    def begin(self) -> None:
        """Note changes from now on."""
        environ: Any = os.environ
        environb: Any = os.environb
        environ._data = environb._data = Environment(environ._data, self._note)

    def report(self) -> None:
        """Report at the end of the run."""
        if _identity() != self._directory:
            self._lines.add(f"{changed.DIRECTORY}\t")
        # This takes a millisecond.
        if self._is_surveyed or sys.modules.keys() - self._modules:
            self._lines.update(f"{changed.REPLACED}{name}\t" for name in library.replaced(self._functions))
        self._write()

    def _note(self, name: bytes) -> None:
        try:
            self._note_it(name)
        except Exception:
            pass

    def _note_it(self, name: bytes) -> None:
        if name in self._noted:
            return
        module = bodies.importing()
        if module in _OF_THE_PROGRAM:
            module = ""
            self._noted.add(name)
        text = name.decode("utf-8", "surrogateescape")
        # A name with such a character would be two words or lines of the file.
        text = changed.ANY if "\n" in text or "\t" in text else text
        self._lines.add(f"{text}\t{module}")
        if changed.concerns(text, self._late):
            self._write()

    def _write(self) -> None:
        if (self._is_observed and self._lines <= self._known) or os.getpid() != self._pid or os.geteuid() != self._uid:
            return
        try:
            changed.append(self._stem, self._lines)
        except OSError:
            pass  # no room on the disk


def _identity() -> tuple[int, int]:
    """Return what identifies the working directory."""
    try:
        found = os.stat(".")
    except OSError:
        return (0, 0)
    return (found.st_dev, found.st_ino)
