"""The search of the heap for what holds a number or a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

WATCHDOG_S = 120
# Dictionaries of texts and numbers are not tracked by the garbage collector: the search reaches them through others.
PROGRAM = """
import gc, sys
from unsnarl.warm.importing import holders
held = [{"name": {"at": number / 7}, "other": (str(number), number / 3)} for number in range(int(sys.argv[1]))]
looks = 0
plain, new = gc.get_referents, holders._new
def get_referents(*things):
    global looks
    looks += 1
    return plain(*things)
def counted(things, *others):
    global looks
    looks += len(things)
    return new(things, *others)
gc.get_referents, holders._new = get_referents, counted
assert not holders.of_number(-int("77"))
assert not holders.of_moment([(-5.5, -4.5)], [])
print(looks)
"""


def said(program: str, *words: str) -> bytes:
    """Return what a program prints, which must not fail."""
    argv = [sys.executable, "-c", program, *words]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, timeout=WATCHDOG_S).stdout


def looks(count: int) -> int:
    """Return at how many objects a search looks among so many."""
    return int(said(PROGRAM, str(count)))


def test_the_search_looks_at_each_object_a_few_times() -> None:
    # With each object: two dictionaries and a tuple, in two searches.
    assert 30_000 * 3 * 2 <= looks(40_000) - looks(10_000) <= 30_000 * 3 * 2 * 3


def test_the_time_of_a_directory_is_not_taken_for_one_that_a_program_keeps() -> None:
    program = (
        "import sys, time\nfrom unsnarl.warm.importing import holders\n"
        "finder = next(one for one in sys.path_importer_cache.values() if one is not None and hasattr(one, 'path'))\n"
        "finder._path_mtime = at = -5 - time.time() % 1 / 7\n"
        "windows = [(-5.5, -4.5)]\nfound = holders.of_moment(windows, [])\nassert not found, found\n"
        "held = [(at,)]\nassert holders.of_moment(windows, [])\n"
    )
    said(program)


def test_a_number_in_a_table_is_another_row_for_each_process() -> None:
    program = (
        "from unsnarl.warm.importing import holders\n"
        "table = [(start, start + 7, 2) for start in range(70_000, 90_000, 8)]\n"
        "one, other = int('70008'), int('70016')\n"
        "assert holders.of_number(one) and not holders.of_number(one) & holders.of_number(other)\n"
        "kept = [('at', one, 1), ('at', other, 1)]\n"
        "assert holders.of_number(one) & holders.of_number(other)\n"
    )
    said(program)


CONSTANTS = {
    "a letter each": "modes = ((32768, '-'), (one, 'd')), ((1024, 'S'), (other, 's'))",
    "rows of other lengths": "cases = {at: (at,) for at in range(20)} | {80001: (9, one), 80002: (other, 70017)}",
    "variables of a module of ours": "import types\n"
    "sys.modules['_unsnarl_warm.one'] = ours = types.ModuleType('one')\nours.LIMIT, ours.OTHER = one, other",
}


@pytest.mark.parametrize("constants", CONSTANTS)
def test_constants_that_are_two_numbers_by_chance_differ(constants: str) -> None:
    program = (
        "import sys\nfrom unsnarl.warm.importing import holders\none, other = int('70008'), int('70016')\n"
        f"{CONSTANTS[constants]}\n"
        "found = holders.of_number(one), holders.of_number(other)\nassert not found[0] & found[1], found\n"
    )
    said(program)


def test_an_instance_may_keep_the_number_to_notice_a_fork() -> None:
    program = (
        "import functools\nfrom unsnarl.warm.importing import holders\n"
        "number = int('70008')\nclass Slot:\n    __slots__ = ('by',)\nclass Plain: pass\n"
        "state, other = Slot(), Plain()\nstate.by = other.by = (number, ('namespace', 4))\n"
        "other.__dict__\ndel number\nassert not holders.of_number(int('70008')), holders.of_number(int('70008'))\n"
        "kept = functools.partial(max, int('70008'))\nassert holders.of_number(int('70008'))\n"
    )
    said(program)


KEPT = {
    "a cache": "@functools.lru_cache\ndef who(): return (number(), 'host')\nwho()",
    "a cache without a limit": "@functools.cache\ndef who(): return (number(), 'host')\nwho()",
    "a number in a cache": "@functools.lru_cache\ndef who(): return number()\nwho()",
    "a number in a cache without a limit": "@functools.cache\ndef who(): return number()\nwho()",
    "a closure": "def make(who): return lambda: who\nwho = make((number(), 'host'))",
    "an instance and a list": "class A: pass\na = A()\na.by = (number(), 'host')\nwho = [a.by]",
    "an instance and a closure": "class A: pass\na = A()\na.by = by = (number(), 'host')\n"
    "def make(who): return lambda: who\nwho = make(by)\ndel by",
    "beside chance": "who = [(number(), random.randrange(60000))]",
    "beside chance in a dictionary": "who = {'a': {'by': number(), 'at': random.randrange(60000)}}",
}


@pytest.mark.parametrize("kept", KEPT)
def test_what_keeps_a_number_is_found_in_two_processes(kept: str) -> None:
    found = []
    for number in ("70008", "70016"):
        program = (
            "import functools, random\nfrom unsnarl.warm.importing import holders\n"
            f"def number(): return int('{number}')\n{KEPT[kept]}\nprint(sorted(holders.of_number(number())))\n"
        )
        found.append(said(program))
    assert found[0] == found[1] != b"[]\n"


def test_a_table_of_tuples_is_one_when_the_collector_does_not_track_it() -> None:
    program = (
        "import gc\nfrom unsnarl.warm.importing import holders\n"
        "table = tuple((start, start + 7) for start in range(70_000, 90_000, 8))\ngc.collect()\n"
        "one, other = int('70008'), int('70016')\n"
        "assert holders.of_number(one) and not holders.of_number(one) & holders.of_number(other)\n"
    )
    said(program)
