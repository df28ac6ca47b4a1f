"""Page survey and prefault: copies, while no client waits, the pages that a run is going to write.

After a fork, the first write to a page copies it, and the first access to a part of a file maps it. These pages
hardly differ between the runs of one command. A run that ends reads its page map (Documentation/admin-guide/mm/
pagemap.rst of Linux), which distinguishes copied pages from those shared with the server. Later spares populate the
same pages before they accept.

Invariant: no contents change. Populating has the effect of a write or a read on the mapping, without writing. A page
that cannot be populated is copied at its first write.
"""

from __future__ import annotations

import ctypes
import os

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

# One row: first address, length in bytes, advice.
Rows = list[tuple[int, int, int]]

_PAGE = os.sysconf("SC_PAGE_SIZE")
# linux/mman.h, since 5.14; earlier kernels refuse them.
_POPULATE_READ, _POPULATE_WRITE = 22, 23
# Bits of an entry of the page map: present, file-backed or shared memory, mapped here only.
_PRESENT, _OF_FILE, _EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56
# Most untouched pages between two rows that are merged: copying them costs less than another system call.
_GAP = 2
# Larger mappings are reserved address space, whose page map would take long to read.
_LARGEST_SPAN = 1 << 30
# Most bytes that a spare copies ahead: each waiting spare holds that much memory of its own.
MAX_BYTES = 32 << 20


def survey() -> Rows:
    """Return the pages that this process has copied since the fork, and those of files that it has mapped."""
    rows: Rows = []
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        lines = maps.readlines()
    table = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
    try:
        for line in lines:
            span, rights, rest = line.split(None, 2)
            low, high = (int(end, 16) for end in span.split("-"))
            is_own = rights[0] == "r" and rights[3] == "p" and "[v" not in rest
            if is_own and high - low <= _LARGEST_SPAN:
                rows += _rows(low, high, table, is_writable=rights[1] == "w")
    finally:
        os.close(table)
    return rows


def _rows(low: int, high: int, table: int, *, is_writable: bool) -> Rows:
    mask, wanted, advice = _PRESENT | _OF_FILE, _PRESENT | _OF_FILE, _POPULATE_READ
    if is_writable:
        mask, wanted, advice = mask | _EXCLUSIVE, _PRESENT | _EXCLUSIVE, _POPULATE_WRITE
    data = os.pread(table, (high - low) // _PAGE * 8, low // _PAGE * 8)
    entries = memoryview(data[: len(data) // 8 * 8]).cast("Q")
    found: list[list[int]] = []
    for number, entry in enumerate(entries):
        if entry & mask == wanted:
            if found and number - found[-1][1] <= _GAP:
                found[-1][1] = number + 1
            else:
                found.append([number, number + 1])
    return [(low + begin * _PAGE, (end - begin) * _PAGE, advice) for begin, end in found]


def store(rows: Rows, path: str) -> None:
    """Write rows to a new file. Raises OSError."""
    temporary = path + ".new"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    os.fchmod(fd, 0o600)
    os.write(fd, "".join(f"{at:x} {length:x} {advice}\n" for at, length, advice in rows).encode())
    os.close(fd)
    os.rename(temporary, path)


def take(path: str) -> Rows:
    """Read the rows that a worker has stored and remove the file; none if it is missing, invalid or too large."""
    rows: Rows = []
    try:
        # As bytes: a codec that the server loads here would look like one that the next run has loaded.
        with open(path, "rb") as file:
            for line in file:
                at, length, advice = line.split()
                rows.append((int(at, 16), int(length, 16), int(advice)))
        os.unlink(path)
    except (OSError, ValueError):
        return []
    is_bearable = sum(length for _, length, advice in rows if advice == _POPULATE_WRITE) <= MAX_BYTES
    return rows if is_bearable else []


def prepare(rows: Rows, libc: Any) -> None:
    """Populate these pages of this process; ``libc`` is the C library as ctypes knows it."""
    advise = libc.madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for at, length, advice in rows:
        advise(at, length, advice)
