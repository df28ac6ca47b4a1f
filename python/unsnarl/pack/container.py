"""The pack format: a checksummed index, then marshalled code objects, read through one memory map.

| bytes | what |
|---|---|
| 0–7 | ``UNSNPACK`` |
| 8–11 | format version, little-endian |
| 12–15 | length of the index |
| 16–23 | SipHash of the index |
| 24– | the index: marshalled ``(magic number of the bytecode, cache tag, -O level, directories, roots, entries)`` |
| … | code objects, marshalled, one after the other |

An entry is ``name: (is_package, path, mtime_ns, size, source, offset, length, hash, kind)``; ``source`` is the hash of
the source file, empty for an extension module.
``kind`` is ``c`` for code, ``l`` for code that is run late (``late.py``), and ``x`` for an
extension module, which is loaded from its own file.

A directory is ``path: (mtime_ns, ctime_ns, inode)``. While the directory has this stamp, its files are not checked
one by one. A pack has directories only if its maker requested them.

A root is a directory of ``sys.path``, ``path: (mtime_ns, ctime_ns, inode, names)``. While the directory has this
stamp, ``names`` are the modules, packages and directories in it, and the links that may come to lead to one.

Invariants: :func:`read` returns a pack only for the interpreter version that made it. All offsets are checked before
anything is unmarshalled, and the hash of a module's bytes immediately before that module is. The hashes detect
damage, not malice: a user who can write a pack can also write the modules next to it.

It imports only what a fresh interpreter has loaded: no hashlib, no typing.
"""

import marshal
import sys
from _frozen_importlib_external import MAGIC_NUMBER
from _imp import source_hash
from posix import stat

TYPE_CHECKING = False  # type checkers treat any variable of this name as true
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

MAGIC = b"UNSNPACK"
VERSION = 5
HEAD = 24
_KEY = 0x756E736E61726C

IS_PACKAGE, PATH, MTIME_NS, SIZE, SOURCE, OFFSET, LENGTH, HASH, KIND = range(9)
NAMES = 3
CODE, LATE, EXTENSION = "c", "l", "x"
_TYPES = (bool, str, int, int, bytes, int, int, bytes, str)


class BadPack(ValueError):  # noqa: N818 (it describes a file, not a call)
    """The file is not a pack for this interpreter; the message says why."""


def identity(optimize: int = sys.flags.optimize) -> tuple[object, ...]:
    """Return the values that must match for code to be usable: bytecode, implementation, -O."""
    return (MAGIC_NUMBER, sys.implementation.cache_tag, optimize)


def digest(data: bytes | memoryview) -> bytes:
    """Return the 8-byte SipHash with which CPython checks hash-based .pyc files."""
    return source_hash(_KEY, data)


def stamp(path: str) -> tuple[int, int, int]:
    """Return a stamp that changes whenever an entry of the directory is added, removed or replaced. Raises OSError."""
    found = stat(path)
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


def write(
    modules: "Mapping[str, tuple[tuple[object, ...], bytes]]",
    directories: "Mapping[str, tuple[int, int, int]] | None" = None,
    roots: "Mapping[str, tuple[Any, ...]] | None" = None,
    *,
    optimize: int = sys.flags.optimize,
) -> bytes:
    """Return the bytes of a pack from ``name: ((is_package, path, mtime_ns, size, source, kind), code)``."""
    index: dict[str, tuple[object, ...]] = {}
    parts: list[bytes] = []
    at = 0
    for name, ((*fixed, kind), code) in modules.items():
        index[name] = (*fixed, at, len(code), digest(code), kind)
        parts.append(code)
        at += len(code)
    contents: Any = (*identity(optimize), dict(directories or {}), dict(roots or {}), index)
    head = marshal.dumps(contents)
    lengths = VERSION.to_bytes(4, "little") + len(head).to_bytes(4, "little")
    return b"".join([MAGIC, lengths, digest(head), head, *parts])


def read(
    data: memoryview,
) -> "tuple[dict[str, tuple[Any, ...]], memoryview, dict[str, tuple[int, int, int]], dict[str, tuple[Any, ...]]]":
    """Return the index, the area that offsets count from, the directories, and the roots. Raises BadPack."""
    if len(data) < HEAD or bytes(data[:8]) != MAGIC:
        raise BadPack("it is not a pack")
    if int.from_bytes(data[8:12], "little") != VERSION:
        raise BadPack("it is of another version of unsnarl")
    length = int.from_bytes(data[12:16], "little")
    head = data[HEAD : HEAD + length]
    if len(head) != length or digest(head) != bytes(data[16:HEAD]):
        raise BadPack("its index is damaged")
    *made_for, directories, roots, entries = marshal.loads(head)
    if tuple(made_for) != identity():
        raise BadPack("it was made by another Python, or with another -O")
    area = data[HEAD + length :]
    for entry in entries.values():
        if tuple(map(type, entry)) != _TYPES or not 0 <= entry[OFFSET] <= entry[OFFSET] + entry[LENGTH] <= len(area):
            raise BadPack("an entry is damaged")
    return entries, area, directories, roots


def code_of(entry: "tuple[Any, ...]", area: memoryview) -> "Any":
    """Return the code object of an entry. Raises BadPack if its bytes are damaged."""
    data = area[entry[OFFSET] : entry[OFFSET] + entry[LENGTH]]
    if digest(data) != entry[HASH]:
        raise BadPack("its code there is damaged")
    return marshal.loads(data)
