"""Globals of imported modules whose value each worker computes again, and the recipe for each.

A module that keeps the time of its import, the process's number or a random text would keep the server's, and
all workers would share it. The learning run finds such globals, the facts file keeps them, each worker renews them.

| recipe | its text in a facts file | its value in a worker |
|---|---|---|
| one of :data:`CLOCKS` | ``time``, ``monotonic_ns``, … | that clock of :mod:`time`, read now |
| :data:`WORKING_DIRECTORY` | ``cwd`` | the caller's directory |
| ``kept(DIRECTORY, "/x")`` | ``cwd:/x`` | a path in the caller's directory |
| ``kept("HOME", "/x")`` | ``env:HOME/x`` | the caller's value of a variable, or a path in it; ``raw:`` for bytes |
| :data:`USER_BASE`, :data:`USER_SITE` | ``userbase``, ``usersite`` | as :mod:`site` computes them for the caller |
| :data:`PROCESS_ID` | ``getpid`` | the worker's number |
| ``Recipe(HEX, 12)`` | ``hex12`` | twelve random hexadecimal digits |
| :data:`UUID` | ``uuid4`` | the digits of a random UUID |
| :data:`UUID_OBJECT` | ``UUID`` | a random UUID, an object of :mod:`uuid` |
| :data:`CGI_ENVIRON` | ``cgi`` | the environment as :mod:`wsgiref` reads it |
| :data:`ENVIRONMENT_COPY` | ``environ`` | the caller's environment, in copies: ``importing/environment_copies.py`` |
| :data:`TEMPORARY_DIRECTORY` | ``mkdtemp`` | the path of a new directory, see ``importing/temporary.py`` |

Invariant: :meth:`Recipe.parse` reads back every text that ``str`` of a recipe has written.
"""

from __future__ import annotations

import os
import sys
import time

from .dataclass import dataclass

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

HEX = "hex"
# Hexadecimal digits without a letter among them, by chance or because they are decimal: never stored in facts.
DECIMAL = "dec"


@dataclass(frozen=True)
class Recipe:
    """How a value is computed.

    ``digits`` is the number of characters of :data:`HEX` and :data:`DECIMAL`; ``variable`` and ``tail`` are
    the name and the end of a path that :func:`kept` was given.
    """

    kind: str
    digits: int = 0
    variable: str = ""
    tail: str = ""

    def __str__(self) -> str:
        """Return the text of a facts file."""
        if self.kind in _KEPT and (self.variable or self.tail):
            return f"{self.kind}:{self.variable}{self.tail}"
        return f"{self.kind}{self.digits or ''}"

    @classmethod
    def parse(cls, text: str) -> Recipe:
        """Read the text of a recipe. Raises ValueError if there is none of this name."""
        if text[:3] in (HEX, DECIMAL):
            return cls(text[:3], int(text[3:]))
        kind, sign, rest = text.partition(":")
        if sign and kind in _KEPT:
            variable, slash, tail = rest.partition("/")
            if bool(variable) == (kind != "cwd"):
                return cls(kind, 0, variable, slash + tail)
        known = cls(text)
        if known not in _PLAIN:
            raise ValueError(f"no recipe is called {text!r}")
        return known

    @property
    def is_random(self) -> bool:
        """Whether two runs get different values without a clock or a process number being involved."""
        return self.kind in (HEX, UUID.kind, UUID_OBJECT.kind)

    @property
    def needs_comparison(self) -> bool:
        """Whether a global of this recipe is only found by comparing two learning runs."""
        return self.is_random or self.kind == PROCESS_ID.kind

    @property
    def is_kept(self) -> bool:
        """Whether the value is one that the caller hands over, and imports only keep."""
        return self.kind in _KEPT

    @property
    def source(self) -> str:
        """The variable whose value is kept; :data:`DIRECTORY` for the working directory."""
        return self.variable or DIRECTORY

    def value(self) -> object:
        """Return the value of this moment in this process; not of what is renewed in place."""
        if self.kind in _KEPT:
            return self._kept_value()
        if self in (USER_BASE, USER_SITE):
            return self._of_user()
        if self.kind == PROCESS_ID.kind:
            return os.getpid()
        if self == CGI_ENVIRON:
            return sys.modules["wsgiref.handlers"].read_environ()
        if self.is_random:
            return self._random_value()
        return getattr(time, self.kind)()

    def _random_value(self) -> object:
        if self.kind == HEX:
            return os.urandom(self.digits).hex()[: self.digits]
        # RFC 9562, 5.4: version and variant are fixed.
        number = bytearray(os.urandom(16))
        number[6], number[8] = number[6] & 0x0F | 0x40, number[8] & 0x3F | 0x80
        return number.hex() if self.kind == UUID.kind else sys.modules["uuid"].UUID(bytes=bytes(number))

    def _kept_value(self) -> object:
        text = os.environ.get(self.variable) if self.variable else os.getcwd()
        if text is not None and self.tail:
            text = text.rstrip("/") + self.tail
        return text if text is None or self.kind != "raw" else os.fsencode(text)

    def _of_user(self) -> object:
        site: Any = sys.modules["site"]
        if self == USER_BASE:
            site.USER_BASE = None
            return site.getuserbase()
        site.USER_SITE = None
        return site.getusersitepackages()


_KEPT = ("cwd", "env", "raw")
# The working directory among the names of variables; no variable that a shell sets is called so.
DIRECTORY = "."
TIME = Recipe("time")
CLOCKS = (TIME, *map(Recipe, ("time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns")))
WORKING_DIRECTORY = Recipe("cwd")
PROCESS_ID = Recipe("getpid")
UUID = Recipe("uuid4")
UUID_OBJECT = Recipe("UUID")
CGI_ENVIRON = Recipe("cgi")
ENVIRONMENT_COPY = Recipe("environ")
TEMPORARY_DIRECTORY = Recipe("mkdtemp")
# In this order: the second is computed from the first.
USER_BASE, USER_SITE = Recipe("userbase"), Recipe("usersite")
# Computed for all workers' objects at once, not for one global.
IN_PLACE = (ENVIRONMENT_COPY, TEMPORARY_DIRECTORY)
_PLAIN = (
    *CLOCKS,
    WORKING_DIRECTORY,
    PROCESS_ID,
    UUID,
    UUID_OBJECT,
    CGI_ENVIRON,
    ENVIRONMENT_COPY,
    TEMPORARY_DIRECTORY,
    USER_BASE,
    USER_SITE,
)


def kept(source: str, tail: str = "", *, is_bytes: bool = False) -> Recipe:
    """Return the recipe of a kept value: that of a variable, or the directory, and the rest of a path in it.

    Raises ValueError if the text of the recipe could not be read back.
    """
    kind = "cwd" if source == DIRECTORY else "raw" if is_bytes else "env"
    made = Recipe(kind, 0, "" if source == DIRECTORY else source, tail)
    if "/" in source or not str(made).isprintable() or Recipe.parse(str(made)) != made:
        raise ValueError(f"no recipe keeps {source!r}")
    return made


@dataclass(frozen=True)
class Renewal:
    """A global, by its module and its name there, and the recipe for its value; or ``CLASS.NAME`` of a class there."""

    module: str
    name: str
    recipe: Recipe
