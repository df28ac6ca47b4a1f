"""The globals of a module, as short digests: shows whether a module that is imported ahead is that of a run.

What a module's body takes from others may have been changed by code of the command: ``cfg.load(sys.argv[1])``, then
``import app``, whose body reads ``cfg.MODE``. No source shows all such changes. So a run that has loaded a module
itself reports what it holds at the end, and a learning run leaves the module to the runs if it holds something else.

Not judged are modules of the standard library, which take nothing from a program's. Digested are the values that
:mod:`.values` compares, whether a global is a standard stream, and otherwise its type; not functions, classes and
modules. Invariant: no code of the modules is called.
"""

from __future__ import annotations

import os
import sys

from . import holders, values

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

_DEFINED: tuple[Any, ...] = (type, type(sys), type(values.table), type(len))  # pyright: ignore[reportUnknownVariableType]
_PLAIN = (str, bytes, int, float, bool, type(None))
_CONTAINERS = (dict, tuple, list, set, frozenset)
_STREAMS = ("stdin", "stdout", "stderr")
_MOST_NAMES = 500
# Part of the reason why a module is left to the runs.
DIFFERS = "comes out otherwise than in a run"
_MOST_BYTES = 1 << 20


def of(name: str) -> dict[str, str]:
    """Return a digest for each global of a loaded module, and for each plain value in a class of it."""
    found = {key: _digest(value) for key, value in values.of_module(name)}
    streams = {id(getattr(sys, f"__{one}__", None)): one for one in _STREAMS}
    for key, value in list(holders.namespace(sys.modules.get(name)).items()):
        if key not in found and not key.startswith("__") and not issubclass(type(value), _DEFINED):
            found[key] = streams.get(id(value), "") or _digest(value)
    names = [key for key in found if key.replace(".", "_").isidentifier()]
    return {key: found[key] for key in names} if len(names) <= _MOST_NAMES else {}


def _digest(value: object) -> str:
    return f"{values.digest(_text(value)) & 0xFFFFFFFF:x}"


def _text(value: object) -> str:
    """Return the type of a value, and what it holds as far as that is plain: items, and a member's number.

    The order of items may be that of a set, which depends on the hash seed.
    """
    kind = type(value)
    held: Any = value
    if kind in _PLAIN:
        return repr(values.unplaced(value))
    text = str(type.__getattribute__(kind, "__qualname__"))
    if kind in _CONTAINERS and len(held) > _MOST_NAMES:
        return f"{text}:{len(held)}"
    if kind is dict:
        return f"{text}:{sorted(f'{_part(key)}={_part(one)}' for key, one in list(held.items()))}"
    if kind in (tuple, list, set, frozenset):
        return f"{text}:{sorted(map(_part, list(held)))}"
    if issubclass(kind, int):  # an enumeration's, such as what is done on a signal
        return f"{text}:{int.__index__(held)}"
    return text


def _part(value: object) -> str:
    """Return the same of an item; of a list or a dictionary only the type."""
    return str(type(value)) if type(value) in (dict, list) else _text(value)


def dump(digests: dict[str, str]) -> str:
    """Return digests as one word."""
    return ",".join(f"{key}={digest}" for key, digest in digests.items())


def parse(text: str) -> dict[str, str]:
    """Return the digests that a word has."""
    pairs = (one.partition("=") for one in text.split(","))
    return {key: digest for key, _, digest in pairs if digest}


def path_of(stem: str) -> str:
    """Return the path of the file of what runs have reported; ``stem`` is that of the command's files."""
    return f"{stem}.made"


def report(stem: str, key: str, modules: list[str]) -> None:
    """Append what these modules hold at the end of a run. Raises OSError, if there is no room on the disk."""
    judged = [name for name in modules if name.isprintable() and name.partition(".")[0] not in sys.stdlib_module_names]
    lines = [f"{name}\t{key}\t{text}\n" for name in judged if (text := dump(of(name)))]
    if not lines:
        return
    fd = os.open(path_of(stem), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)  # independent of the command's mask: later runs append to the file
        if os.fstat(fd).st_size < _MOST_BYTES:
            os.write(fd, "".join(lines).encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)


def reported(stem: str, key: str) -> dict[str, list[str]]:
    """Return what runs have reported of each module: those of this key, of a module that only others have, these."""
    found: dict[str, dict[str, list[str]]] = {}
    try:
        with open(path_of(stem), encoding="utf-8", errors="surrogateescape") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
    except OSError:
        return {}
    for name, of_key, text in (row for row in rows if len(row) == 3):
        found.setdefault(name, {}).setdefault(of_key, []).append(text)
    each = {name: keys.get(key) or [text for texts in keys.values() for text in texts] for name, keys in found.items()}
    return {name: [*dict.fromkeys(texts)] for name, texts in each.items()}
