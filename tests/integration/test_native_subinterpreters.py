"""In a sub-interpreter that shares the main one's GIL the native module refuses all but the scheduler's functions.

It can be loaded there, unlike in an isolated one. Its classes exist once a process, so that whoever asked first had
them, and before CPython 3.12 a wait in one asked for the GIL that the sub-interpreter held: the process stood still.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Programs

REFUSED = (
    "ImportError: cannot import 'Barrier' from 'unsnarl._native': this is a sub-interpreter, and unsnarl's primitives "
    "do not work here (hint: import them in the main interpreter alone, and use the standard library's here)"
)

HERE = """
try:
    import _interpreters as interpreters
    shared = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    shared = interpreters.create(isolated=False)
def there(source):
    error = interpreters.run_string(shared, source)
    assert not error, error
    interpreters.destroy(shared)  # 3.15 warns of one that is left at the end
"""

WAIT = """
try:
    from unsnarl.sync import Event
except Exception as error:
    print(f"{type(error).__name__}: {error}", flush=True)
    from threading import Event
Event().wait(0.001)
"""

SCHEDULERS = """
from unsnarl import _native, gil
assert not gil.installed()
assert gil.stats() is not None
assert {"install", "stats"} <= set(dir(_native))
assert "Event" not in dir(_native)
"""

MAIN = """
from unsnarl import _native, sync
assert not sync.Event().wait(0.001)
assert "Event" in dir(_native)
"""


def run(programs: Programs, text: str) -> list[str]:
    """Run a program that has to end well, without a complaint, and return the lines that it printed."""
    status, printed, complaint = programs.python(programs.write("program.py", text))
    assert (status, complaint) == (0, b"")
    return printed.decode().splitlines()


@pytest.mark.parametrize(
    ("before", "after"), [("", MAIN), (MAIN, "")], ids=["there first", "in the main interpreter first"]
)
def test_primitives_are_refused_there_and_work_in_the_main_interpreter(
    programs: Programs, before: str, after: str
) -> None:
    assert run(programs, f"{before}{HERE}there({WAIT!r})\n{after}") == [REFUSED]


def test_the_schedulers_functions_can_be_had_there(programs: Programs) -> None:
    assert run(programs, f"{HERE}there({SCHEDULERS!r})\n{MAIN}") == []
