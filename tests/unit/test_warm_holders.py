"""The search of the heap for what holds a number or a time."""

from __future__ import annotations

import subprocess
import sys

WATCHDOG_S = 120
# Dictionaries of texts and numbers are not tracked by the garbage collector: the search reaches them through others.
PROGRAM = """
import sys, time
from unsnarl.warm.importing import holders
held = [{"name": {"at": number / 7}, "other": (str(number), number / 3)} for number in range(int(sys.argv[1]))]
begun_s = time.process_time()
assert not holders.of_number(-int("77"))
assert not holders.of_moment([(-5.5, -4.5)], [])
print(time.process_time() - begun_s)
"""


def taken_s(count: int) -> float:
    """Return the processor seconds of a search among so many objects, the least of three."""
    argv = [sys.executable, "-c", PROGRAM, str(count)]
    runs = [subprocess.run(argv, check=True, capture_output=True, timeout=WATCHDOG_S) for _ in range(3)]
    return min(float(run.stdout) for run in runs)


def test_the_search_takes_time_in_proportion_to_the_objects() -> None:
    assert taken_s(40_000) < 10 * taken_s(10_000)


def test_the_time_of_a_directory_is_not_taken_for_one_that_a_program_keeps() -> None:
    program = (
        "import sys, time\nfrom unsnarl.warm.importing import holders\n"
        "finder = next(one for one in sys.path_importer_cache.values() if one is not None and hasattr(one, 'path'))\n"
        "finder._path_mtime = at = -5 - time.time() % 1 / 7\n"
        "windows = [(-5.5, -4.5)]\nfound = holders.of_moment(windows, [])\nassert not found, found\n"
        "held = [(at,)]\nassert holders.of_moment(windows, [])\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=WATCHDOG_S)


def test_a_number_in_a_table_is_another_row_for_each_process() -> None:
    program = (
        "from unsnarl.warm.importing import holders\n"
        "table = [(start, start + 7, 2) for start in range(70_000, 90_000, 8)]\n"
        "one, other = int('70008'), int('70016')\n"
        "assert holders.of_number(one) and not holders.of_number(one) & holders.of_number(other)\n"
        "kept = [('at', one, 1), ('at', other, 1)]\n"
        "assert holders.of_number(one) & holders.of_number(other)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=WATCHDOG_S)


def test_an_instance_may_keep_the_number_to_notice_a_fork() -> None:
    program = (
        "import functools\nfrom unsnarl.warm.importing import holders\n"
        "number = int('70008')\nclass Slot:\n    __slots__ = ('by',)\nclass Plain: pass\n"
        "state, other = Slot(), Plain()\nstate.by = other.by = (number, ('namespace', 4))\n"
        "other.__dict__\ndel number\nassert not holders.of_number(int('70008')), holders.of_number(int('70008'))\n"
        "kept = functools.partial(max, int('70008'))\nassert holders.of_number(int('70008'))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=WATCHDOG_S)
