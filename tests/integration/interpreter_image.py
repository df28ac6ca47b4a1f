"""Reads the parts of the interpreter's memory that an installation may change.

These are the global offset table of the object that contains the interpreter, read through
/proc/self/mem, and the protection of all pages of that object. Invariant: reading changes
nothing, and uses no code of the scheduler.
"""

import ctypes
import struct
from pathlib import Path
from typing import NamedTuple

_LOAD = 1
"""PT_LOAD."""


class Mapping(NamedTuple):
    """One line of /proc/self/maps."""

    start: int
    end: int
    protection: str
    offset: int
    path: str


class Image(NamedTuple):
    """The tables and the pages of the interpreter's object."""

    words: dict[int, int]
    """Contents of the global offset table by address."""
    mappings: list[Mapping]

    def rebound_since(self, before: "Image") -> dict[int, tuple[int, int]]:
        """Return the words that differ, but for functions the dynamic linker has bound since."""
        return {
            address: (before.words[address], word)
            for address, word in self.words.items()
            if word != before.words[address] and not self._is_binding(before.words[address], word)
        }

    def _is_binding(self, before: int, after: int) -> bool:
        inside = any(mapping.start <= before < mapping.end for mapping in self.mappings)
        return inside and "unsnarl" not in path_of(after)


def take() -> Image:
    """Read the image of this process."""
    function = ctypes.cast(ctypes.pythonapi.PyEval_RestoreThread, ctypes.c_void_p).value or 0
    path = path_of(function)
    mappings = [mapping for mapping in maps() if mapping.path == path]
    words: dict[int, int] = {}
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for start, size in tables(Path(path).read_bytes(), mappings[0].start):
            memory.seek(start)
            values = struct.unpack(f"{size // 8}Q", memory.read(size))
            words.update((start + 8 * place, value) for place, value in enumerate(values))
    return Image(words, merged(mappings))


def maps() -> list[Mapping]:
    """Return the mappings of this process."""
    found: list[Mapping] = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        area, protection, offset, _device, _inode, *path = line.split(maxsplit=5)
        start, end = (int(address, 16) for address in area.split("-"))
        found.append(Mapping(start, end, protection, int(offset, 16), path[0] if path else ""))
    return found


def merged(mappings: list[Mapping]) -> list[Mapping]:
    """Join neighbours of the same protection: the kernel may or may not have done so."""
    result: list[Mapping] = []
    for mapping in mappings:
        if result and result[-1].end == mapping.start and result[-1].protection == mapping.protection:
            result[-1] = result[-1]._replace(end=mapping.end)
        else:
            result.append(mapping)
    return result


def path_of(address: int) -> str:
    """Return the file that an address is mapped from, or an empty string."""
    return next((mapping.path for mapping in maps() if mapping.start <= address < mapping.end), "")


def tables(elf: bytes, base: int) -> list[tuple[int, int]]:
    """Return address and size of the sections .got and .got.plt of a 64-bit ELF file loaded at `base`."""
    (program, section) = struct.unpack_from("<QQ", elf, 32)
    program_size, program_count, section_size, section_count, names = struct.unpack_from("<HHHHH", elf, 54)
    headers = [struct.unpack_from("<IIQQQQQQ", elf, program + n * program_size) for n in range(program_count)]
    first = min(header[3] for header in headers if header[0] == _LOAD) & ~0xFFF
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, section + n * section_size) for n in range(section_count)]
    strings = sections[names][4]
    return [
        (base - first + entry[3], entry[5])
        for entry in sections
        if elf[strings + entry[0] : strings + entry[0] + 10].split(b"\0", 1)[0] in {b".got", b".got.plt"}
    ]
