"""The lines of a program that is a module of the standard library."""

from __future__ import annotations

import pytest

from unsnarl.trace import main_module
from unsnarl.trace.model import Location

RUN = [Location("<frozen runpy>", "_run_code", 88), Location("<frozen runpy>", "_run_module_as_main", 198)]
READS = Location("/lib/python3/subprocess.py", "Popen.communicate", 1206)
CALLS = Location("/lib/python3/venv/__init__.py", "EnvBuilder._setup_pip", 400)
MAIN = Location("/lib/python3/venv/__main__.py", "<module>", 6)
FILE = [Location("/lib/python3/timeit.py", "main", 320), Location("/lib/python3/timeit.py", "<module>", 380)]
IMPORTS = [
    Location("/lib/python3/json/tool.py", "<module>", 3),
    Location("<frozen importlib._bootstrap>", "_call", 241),
]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([READS, CALLS, MAIN, *RUN], CALLS),
        ([READS, MAIN, *RUN], MAIN),
        ([READS, *FILE, *RUN], FILE[0]),
        ([READS, *IMPORTS, MAIN, *RUN], MAIN),
        ([READS, CALLS], None),  # the stack is cut, or another thread's
        ([READS, *IMPORTS], None),
        ([MAIN], None),
        ([], None),
    ],
)
def test_the_innermost_line_of_the_module_that_runs_is_the_program_s(
    lines: list[Location], expected: Location | None
) -> None:
    assert main_module.innermost_line(lines) == expected
