"""The search of the heap for what holds a number or a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unsnarl.warm.importing import values

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


CONSTANTS = {
    "one each": "rest = [(number(0), 'd')], [(number(1), 's')]",
    "in rows of a table": "rest = {at: (at, number(at // 8 % 2)) for at in range(20)}",
}
KEEPERS = {
    "a tuple": "kept = [(number(own), 'host')]",
    "beside a letter by chance": "kept = [(number(own), random.choice(string.ascii_letters))]",
    "in one of equal rows": "kept = [(number(own), number(own) % 7)] + [(at, at) for at in range(20)]",
}


def rows_of(own: int, made: str) -> list[str]:
    """Return the rows of a process that has one of two numbers, has made this, and looks for both numbers."""
    program = (
        "import os, random, string, sys\nfrom unsnarl.warm.importing import values\n"
        "def number(which): return int(('70008', '70016')[which])\n"
        f"own = {own}\n{made}\nos.getpid = lambda: number(own)\n"
        "for place, row in values.of_process({'70008'}).items(): print(*place, *row, sep='\\t')\n"
    )
    return said(program).decode().splitlines()


def differing(made: str) -> list[str]:
    """Return the places that keep the number, in the comparison of two such processes."""
    tables = []
    for own in (0, 1):
        rows = [line.split("\t") for line in rows_of(own, made)]
        tables.append({(row[0], row[1]): (row[2], row[3], row[4]) for row in rows})
    return [name for _, module, name, _ in values.differing(*tables) if not module]


@pytest.mark.parametrize("constants", CONSTANTS)
def test_constants_that_are_both_numbers_are_no_places_that_keep_them(constants: str) -> None:
    assert rows_of(0, CONSTANTS[constants]), "it holds the number"
    assert differing(CONSTANTS[constants]) == []


@pytest.mark.parametrize("kept", KEEPERS)
@pytest.mark.parametrize("constants", ["", *CONSTANTS.values()])
def test_what_keeps_the_number_is_found_beside_constants(kept: str, constants: str) -> None:
    assert differing(f"{constants}\n{KEEPERS[kept]}") != []


def test_limits_of_ours_are_no_numbers_of_processes() -> None:
    program = (
        "import sys, types\nfrom unsnarl.warm.importing import holders\n"
        "sys.modules['_unsnarl_warm.one'] = ours = types.ModuleType('one')\nours.LIMIT = int('70008')\n"
        "assert not holders.of_number(int('70008'))\n"
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
