"""Pages copied ahead: the ones a run writes, found by its page map, with the same contents."""

import ctypes
import mmap
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from unsnarl.warm.worker import pages

# The watchdog is a thread; the child does not go near anything that it may hold.
pytestmark = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")

PAGE = mmap.PAGESIZE
COUNT = 64
WRITTEN = range(8, 24)


def in_a_fork(job: Callable[[], bytes]) -> bytes:
    """Return what a forked process answers; it touches nothing of this one."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, job())
        finally:
            os._exit(0)
    os.close(write)
    with open(read, "rb") as answers:
        answer = answers.read()
    os.waitpid(pid, 0)
    return answer


@pytest.fixture
def area() -> mmap.mmap:
    """Private memory with something in it."""
    area = mmap.mmap(-1, COUNT * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    area.write(b"\x55" * len(area))
    return area


def address_of(area: mmap.mmap) -> int:
    """Return where memory is mapped."""
    return ctypes.addressof(ctypes.c_char.from_buffer(area))


def own_pages(area: mmap.mmap) -> list[int]:
    """Return the numbers of the pages that the survey of this process reports as its own."""
    first = address_of(area)
    spans = [(at, at + length) for at, length, advice in pages.survey() if advice == 23]
    return [n for n in range(COUNT) if any(low <= first + n * PAGE < high for low, high in spans)]


def test_a_survey_finds_what_was_written_since_the_fork(area: mmap.mmap) -> None:
    def job() -> bytes:
        for number in WRITTEN:
            area[number * PAGE] = 1
        return bytes(own_pages(area))

    assert in_a_fork(job) == bytes(WRITTEN)


def test_prepared_pages_are_the_processs_own_and_unchanged(area: mmap.mmap) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.madvise(ctypes.c_void_p(address_of(area)), ctypes.c_size_t(PAGE), 23) != 0:
        pytest.skip(f"this kernel cannot populate pages: {os.strerror(ctypes.get_errno())}")
    rows = [(address_of(area) + WRITTEN.start * PAGE, len(WRITTEN) * PAGE, 23)]

    def job() -> bytes:
        pages.prepare(rows, libc)
        return bytes([area[:] == b"\x55" * len(area), *own_pages(area)])

    assert in_a_fork(job) == bytes([True, *WRITTEN])


def test_rows_survive_a_file_that_is_gone_afterwards(tmp_path: Path) -> None:
    path = str(tmp_path / "rows")
    rows = [(0x7F0000000000, PAGE, 23), (0x1000, 3 * PAGE, 22)]
    pages.store(rows, path)
    assert pages.take(path) == rows
    assert pages.take(path) == []


@pytest.mark.parametrize("text", ["nonsense\n", "1000 zz 23\n", "1 2\n", f"1000 {pages.MAX_BYTES + 1:x} 23\n"])
def test_what_makes_no_sense_or_is_too_much_is_not_prepared(tmp_path: Path, text: str) -> None:
    path = tmp_path / "rows"
    path.write_text(text)
    assert pages.take(str(path)) == []


def test_rows_that_do_not_fit_this_process_do_no_harm() -> None:
    pages.prepare([(PAGE, PAGE, 23), (0, PAGE, 22), ((1 << 46), 5 * PAGE, 23)], ctypes.CDLL(None))
