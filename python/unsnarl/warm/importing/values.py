"""Comparison of two learning runs: finds the globals that have another value in each run.

Values made of the process's number, of chance or of the time of day differ between the two runs. Values made of
the date do not, so they are searched for separately: today's date in the usual forms, or the year, unless a module's
code contains it as a constant.

Compared are strings, bytes, numbers, UUIDs, and lists, tuples, sets and dictionaries of them, in the globals of modules
and in the classes they define. Attributes of instances are not compared.

Invariant: no code of the compared modules is called. Values are compared by hash and never leave the process.
"""

from __future__ import annotations

import _imp
import os
import sys
import time

from ..renewals import DECIMAL, HEX, PROCESS_ID, UUID, UUID_OBJECT, Recipe
from . import holders, preload

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType
    from typing import Any

# The file mode mask of learning runs. No import sets this one; it keeps files as private as the usual 077 does.
MASK = 0o076
# One row a global: the module asked for, a digest of the value, and the text of its recipe. Rows without a module are
# places that hold the process's number, with this number and how many do.
Table = dict[tuple[str, str], tuple[str, str, str]]

# After the name of a place, and before the number of an earlier run's process that it holds as well.
_OF_EARLIER = " of process "
_FEWEST_DIGITS = 8
_SCALARS: tuple[type, ...] = (str, bytes, int, float, bool)
_KINDS = frozenset(_SCALARS)
_SEQUENCES: tuple[type, ...] = (tuple, list, set, frozenset)
# Largest container and longest text that are examined; texts made of a moment are short.
_MOST_ITEMS, _LONGEST_DATED = 10_000, 200
# Addresses of libraries and heaps on 64 bits: they differ between runs and mean the same object. Without a GIL
# mimalloc allocates the objects, from two terabytes upwards.
_ADDRESSES = range(1 << (41 if "t" in sys.abiflags else 44), 1 << 48)
_DATES = ("%Y%m%d", "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%a %b %e")
_TIMES = ("%H%M%S", "%H:%M:%S", "%H-%M-%S")


def of_module(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the compared values of a module, each with its name there."""
    names = holders.namespace(sys.modules.get(name))
    for key, value in list(names.items()):
        if key.startswith("__") and key.endswith("__"):
            continue
        # By the type: `isinstance` reads a proxy's `__class__`, which may run the program's own code.
        if issubclass(type(value), type) and type.__getattribute__(value, "__module__") == name:
            for member, held in list(type.__getattribute__(value, "__dict__").items()):
                if not member.startswith("__") and _is_plain(held):
                    yield f"{key}.{member}", held
        elif _is_plain(value):
            yield key, value


def is_of_mask(row: tuple[str, str, str]) -> bool:
    """Return whether a row of a table may be the mask of a learning run."""
    return row[1] == str(_digest(MASK))


def of_global(module: str, name: str) -> Any:
    """Return a global, None if there is none."""
    return holders.namespace(sys.modules.get(module)).get(name)


def _is_plain(value: object) -> bool:
    kind: type = type(value)
    if _is_compared(value):
        return True
    if kind is not dict and kind not in _SEQUENCES:
        return False
    held: Any = value
    return len(held) <= _MOST_ITEMS and (kind is dict or all(one in _KINDS or _is_uuid(one) for one in map(type, held)))


def _is_uuid(kind: type) -> bool:
    return kind.__name__ == "UUID" and kind.__module__ == "uuid"


def _is_compared(value: object) -> bool:
    return type(value) in _SCALARS or _is_uuid(type(value))


def _number_of(uuid: Any) -> int:
    number: int = object.__getattribute__(uuid, "int")
    return number


def _items(value: object) -> Iterable[Any]:
    """Return the items of a container, or the value itself."""
    if _is_compared(value):
        return (value,)
    kind: type = type(value)
    held: Any = value
    items: Iterable[Any] = held.values() if kind is dict else held
    return items


def _digest(value: object) -> int:
    held: Any = value
    kind: type = type(value)
    if _is_uuid(kind):
        value = _number_of(held)
    if kind is dict:
        value = [tuple(map(_unplaced, pair)) for pair in held.items() if all(_is_compared(part) for part in pair)]
    elif kind in (tuple, list):
        value = list(map(_unplaced, held))
    elif kind in (set, frozenset):
        value = sorted(repr(_unplaced(one)) for one in held)  # the order depends on insertion, and on hashes
    text = repr(_unplaced(value))
    # Independent of the hash seed, which is the caller's in a server.
    return 0 if "0x" in text else int.from_bytes(_imp.source_hash(0, text.encode("utf-8", "surrogatepass")), "little")


def _unplaced(value: object) -> object:
    """Return the same number for all addresses."""
    return 0 if type(value) is int and value in _ADDRESSES else value


def _recipe(key: str, value: object) -> Recipe | None:
    """Return the recipe by which a worker could compute a global, None if there is none."""
    if not key.isidentifier():
        return None  # in a class
    if type(value) is int:
        return PROCESS_ID if value == os.getpid() else None
    if _is_uuid(type(value)):
        return UUID_OBJECT if _number_of(value) >> 76 & 15 == 4 else None  # RFC 9562, 4.2: the version
    if type(value) is str and len(value) >= _FEWEST_DIGITS and not value.strip("0123456789abcdef"):
        if len(value) == 32 and value[12] == "4" and value[16] in "89ab":
            return UUID
        return Recipe(DECIMAL if value.isdecimal() else HEX, len(value))
    return None


def write(
    path: str,
    modules: list[str],
    owners: dict[str, str],
    known: set[tuple[str, str]],
    others: Iterable[tuple[str, str, str, str]] = (),
) -> None:
    """Write the values to compare with another run, without the globals in ``known``, whose recipes are known.

    ``others`` are further values, of no global: ``(module asked for, module, name, value)``. So is the process's
    number in whatever else the imports have made. Earlier runs have written their values to the same directory.
    """
    earlier = _earlier(path)
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        rows = (table(modules, known) | of_process(earlier)).items()
        file.writelines(f"{owners.get(name, '')}\t{name}\t{key}\t{row[1]}\t{row[2]}\n" for (name, key), row in rows)
        file.writelines(f"{owner}\t{name}\t{key}\t{_digest(value)}\t\n" for owner, name, key, value in others)


def _earlier(path: str) -> set[str]:
    """Return the numbers of the processes of earlier runs that have been found in them."""
    directory = os.path.dirname(path)
    names = [name for name in os.listdir(directory) if name.endswith(".values")]
    return {number for name in names for number in numbers_of(read(os.path.join(directory, name)))}


def table(modules: list[str], known: set[tuple[str, str]]) -> Table:
    """Return the values of modules in this process, without the globals in ``known``, whose recipes are known."""
    found: Table = {}
    for name in modules:
        for key, value in of_module(name):
            if (name, key) not in known and key.isprintable() and not preload.holds_arguments(value):
                found[name, key] = ("", str(_digest(value)), str(_recipe(key, value) or ""))
    return found


def differs(module: str, name: str) -> str:
    """Say that a row differs; those without a module hold the process's number."""
    return f"{module}.{name} differs from run to run" if module else f"{name} keeps the number of its process"


def of_process(earlier: Iterable[str]) -> Table:
    """Return the places that hold this process's number, but for globals and instances, as rows of a table.

    Further rows say where the numbers of ``earlier`` processes are here. A number that is a constant is in both.
    """
    own = str(os.getpid())
    found: Table = {}
    for text in sorted({own, *earlier}):  # a text, since a list of numbers would hold what is searched for
        mark = "" if text == own else f"{_OF_EARLIER}{text}"
        for place, count in holders.of_number(int(text)).items():
            found["", f"{place}{mark}"] = ("", str(_digest(int(text))), f"{text} {count}")
    return found


def numbers_of(rows: Table) -> set[str]:
    """Return the number of the process that has written these rows, if it was in one of their places."""
    return {
        row[2].partition(" ")[0] for (module, place), row in rows.items() if not module and _OF_EARLIER not in place
    }


def _keeps_number(place: str, before: Table, after: Table) -> bool:
    """Return whether a place holds the number of each of two processes, in the first one not only as a constant."""
    if ("", place) not in before or _OF_EARLIER in place:
        return False
    number, _, count = before["", place][2].partition(" ")
    constants = after.get(("", f"{place}{_OF_EARLIER}{number}"), ("", "", " 0"))[2].partition(" ")[2]
    return int(count) > int(constants)


def is_today(value: object) -> bool:
    """Return whether this is a ``datetime`` object of today."""
    kind = type(value)
    if kind.__module__ != "datetime" or kind.__name__ not in ("date", "datetime"):
        return False
    # 719163 is the proleptic day number of 1970-01-01; time zones account for a day more or less.
    day: Any = value
    return bool(abs(day.toordinal() - time.time() // 86400 - 719163) <= 1)


def differing(before: Table, after: Table) -> list[tuple[str, str, str, Recipe | None]]:
    """Compare the values of two runs: ``(owner, module, name, recipe)`` of each global that differs.

    The recipe is None if no worker could compute the value. All globals with random digits must have the same
    value: of two different ones, the second may be derived from the first.
    """
    found: list[tuple[str, str, str, Recipe | None]] = []
    random: set[tuple[str, str]] = set()
    for (name, key), (owner, digest, text) in after.items():
        if not name:
            found += [(owner, name, key, None)] if _keeps_number(key, before, after) else []
            continue
        _, old, was = before.get((name, key), (owner, digest, text))
        if old != digest:
            agreed = _agreed(*(Recipe.parse(each) if each else None for each in (was, text)))
            if agreed not in (None, PROCESS_ID):
                random.add((old, digest))
            found.append((owner, name, key, agreed))
    if len(random) > 1:
        found = [(owner, name, key, how if how == PROCESS_ID else None) for owner, name, key, how in found]
    return found


def _agreed(one: Recipe | None, other: Recipe | None) -> Recipe | None:
    """Return the recipe that fits the values of both runs, None if there is none."""
    if one is None or other is None:
        return None
    if one == other:
        # Digits without a letter in both runs may be those of a time.
        return None if one.kind == DECIMAL else one
    if {one.kind, other.kind} == {HEX, DECIMAL} and one.digits == other.digits:
        return Recipe(HEX, one.digits)
    return Recipe(HEX, 32) if {one, other} == {UUID, Recipe(HEX, 32)} else None


def fingerprint(path: str, but: set[tuple[str, str]]) -> str:
    """Return a digest that two such files share if they hold the same modules and values; nothing if there is none.

    The globals in ``but`` are not compared: each worker sets them again.
    """
    import hashlib  # not loaded in a server, which imports this file for other functions

    if not os.path.exists(path):
        return ""
    rows = sorted((name, key, row[1]) for (name, key), row in read(path).items() if (name, key) not in but)
    return hashlib.sha256(repr(rows).encode(errors="surrogatepass")).hexdigest()


def read(path: str) -> Table:
    """Return the values that another run has written; none if there is no such file."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
    except OSError:
        return {}
    return {(row[1], row[2]): (row[0], row[3], row[4]) for row in rows if len(row) == 5}


class Moment:
    """The time of a learning run; finds globals that were made of it."""

    def __init__(self, begun_s: float) -> None:
        ended_s = time.time()
        seconds = range(int(begun_s), min(int(ended_s), int(begun_s) + 600) + 1)
        zones = (time.localtime, time.gmtime)
        self._numbers = range(int(begun_s), int(ended_s) + 1)
        self._years = {zone(second).tm_year for zone in zones for second in (begun_s, ended_s)}
        self._marks = {time.strftime(form, zone(s)) for form in _DATES for zone in zones for s in (begun_s, ended_s)}
        self._marks |= {time.strftime(form, zone(s)) for form in _TIMES for zone in zones for s in seconds}
        self._marks |= set(map(str, seconds))
        self._marks = {mark for mark in self._marks if mark not in "0123456789"}  # else alphabets match at 12:34:56
        # A time of day alone has six digits, as a process number may have.
        self._dates = {int(mark) for mark in self._marks if mark.isdecimal() and len(mark) >= 8}
        self._written: set[object] | None = None

    def find(self, modules: list[str]) -> Iterator[tuple[str, str]]:
        """Yield the globals of these modules that contain the date or the time, as ``(module, name)``."""
        for name in modules:
            rows = list(of_module(name))
            for key, value in rows if self._may_be_in(rows) else ():
                is_alone = type(value) in _SCALARS  # in a container, a year may be part of a range or a version
                found = (item for item in _items(value) if self._is_of_today(item, is_alone=is_alone))
                if not all(self._is_written(item, modules) for item in found):
                    yield name, key

    def _may_be_in(self, rows: list[tuple[str, Any]]) -> bool:
        """Return whether any of these values may be of today: a quick look at all of them together."""
        items: list[Any] = [item for _, value in rows for item in _items(value)]
        texts = [item for item in items if type(item) is str and len(item) <= _LONGEST_DATED]
        texts += [item.decode("latin-1") for item in items if type(item) is bytes]
        joined = "\n".join(texts)
        if any(mark in joined for mark in self._marks) or any(str(year) in joined for year in self._years):
            return True
        return any(self._is_of_today(item, is_alone=True) for item in {item for item in items if type(item) is int})

    def _is_of_today(self, value: object, *, is_alone: bool) -> bool:
        if type(value) is bytes:
            value = value.decode("latin-1")
        if type(value) is str:
            is_year = is_alone and value.isdecimal() and int(value) in self._years
            return is_year or (len(value) <= _LONGEST_DATED and any(mark in value for mark in self._marks))
        is_year = is_alone and value in self._years
        return type(value) is int and (is_year or value in self._numbers or value in self._dates)

    def _is_written(self, value: object, modules: list[str]) -> bool:
        """Return whether a module's code has the value as a constant, as a release date or an error number."""
        if self._written is None:
            self._written = set()
            for name in modules:
                spec = getattr(sys.modules.get(name), "__spec__", None)
                try:
                    _constants(spec.loader.get_code(name), self._written)  # type: ignore[union-attr]
                except Exception:
                    continue  # its code cannot be read
        if value in self._written:
            return True
        return type(value) is str and any(type(text) is str and value in text for text in self._written)


def _constants(code: CodeType | None, found: set[object]) -> None:
    for constant in code.co_consts if code is not None else ():
        if type(constant) is type(code):
            _constants(constant, found)
        elif type(constant) in (tuple, frozenset):
            found.update(constant)
        else:
            found.add(constant)
