"""What runs of a command have changed of their process: ``COMMAND.changed``, to which workers append.

| line | meaning |
|---|---|
| ``NAME<TAB>`` | code of the program has set or removed this variable |
| ``NAME<TAB>MODULE`` | the body of this module has, while a run imported it |
| ``.<TAB>`` | a run has ended in another working directory |
| ``=MODULE.NAME<TAB>`` | a run has ended with something else in the place of a function of the standard library |
| ``*<TAB>`` | there are too many names: it may be any variable |

Facts name what imports have read or kept that are made ahead of code of the command (``late``), as ``NAME``,
``BEGINNING*``, ``.`` or ``=MODULE.NAME``. A later line about one of these (:func:`news`) means that such an import has
found another value than plainly.

Invariant: a line is never removed or changed, so the size of the file tells which lines are new. No value is stored.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Container, Iterable

ANY, DIRECTORY, REPLACED = "*", ".", "="
# Most bytes of the file; from there on any variable counts as changed.
MOST_BYTES = 1 << 16


def path_of(stem: str) -> str:
    """Return the path of the file; ``stem`` is that of the command's files."""
    return f"{stem}.changed"


def size(stem: str) -> int:
    """Return the size of the file in bytes; 0 if there is none."""
    try:
        return os.stat(path_of(stem)).st_size
    except OSError:
        return 0


def is_there(stem: str) -> bool:
    """Return whether a run has ended that was watched; it may have changed nothing."""
    return os.path.exists(path_of(stem))


def read(stem: str, start: int = 0, end: int = -1) -> list[str]:
    """Return the lines between two places in the file."""
    try:
        with open(path_of(stem), "rb") as file:
            file.seek(start)
            data = file.read(end - start if end >= 0 else -1)
    except OSError:
        return []
    return [line for line in data.decode("utf-8", "surrogateescape").split("\n") if "\t" in line]


def names(lines: Iterable[str], imported: Container[str] = ()) -> set[str]:
    """Return what these lines name, without what only the bodies of ``imported`` modules have changed."""
    pairs = (line.partition("\t") for line in lines)
    return {name for name, _, module in pairs if not module or module not in imported}


def news(stem: str, known: int, late: Iterable[str]) -> str:
    """Return what is in ``late`` that runs have changed since the file was ``known`` bytes long."""
    late = frozenset(late)
    now = size(stem)
    if not late or now == known:
        return ""
    # A file that is smaller was removed meanwhile and made again.
    fresh = read(stem, known if now > known else 0)
    return next((name for name in sorted(names(fresh)) if concerns(name, late)), "")


def concerns(name: str, late: frozenset[str]) -> bool:
    """Return whether a change of this name is one of what was read too early."""
    if name == ANY:
        return any(not one.startswith((DIRECTORY, REPLACED)) for one in late)
    return name in late or any(name.startswith(one[:-1]) for one in late if one.endswith("*"))


def in_words(name: str) -> str:
    """Return a name for the log."""
    if name.startswith(REPLACED):
        return name[1:]
    return {DIRECTORY: "the working directory", ANY: "many variables"}.get(name, f"${name}")


def append(stem: str, lines: Iterable[str]) -> None:
    """Add those of these lines that are not there yet, to a file which is there from now on. Raises OSError."""
    known = read(stem)
    fresh = sorted({*lines}.difference(known))
    if fresh and size(stem) > MOST_BYTES:
        others = [line for line in fresh if line.startswith((DIRECTORY, REPLACED))]
        fresh = others + [line for line in (f"{ANY}\t",) if line not in known]
    if not fresh and is_there(stem):
        return
    fd = os.open(path_of(stem), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)  # independent of the command's mask: later runs append to the file
        os.write(fd, "".join(f"{line}\n" for line in fresh).encode("utf-8", "surrogateescape"))
    finally:
        os.close(fd)
