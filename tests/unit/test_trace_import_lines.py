"""Stacks of imports, and of direct calls of the import system's functions."""

from __future__ import annotations

import pytest

from unsnarl.trace import import_lines
from unsnarl.trace.model import Location

BOOTSTRAP, EXTERNAL = "<frozen importlib._bootstrap>", "<frozen importlib._bootstrap_external>"
COMPILES = Location(EXTERNAL, "SourceLoader.source_to_code", 1000)
CALLS = Location(BOOTSTRAP, "_call_with_frames_removed", 488)
BODY = Location("/srv/app.py", "<module>", 3)


@pytest.mark.parametrize(
    ("lines", "is_importing"),
    [
        ([Location(EXTERNAL, "FileFinder.find_spec", 1628), Location(BOOTSTRAP, "_find_and_load", 1360), BODY], True),
        ([COMPILES, Location(BOOTSTRAP, "_find_and_load", 1360), BODY], True),
        (
            [BODY, CALLS, Location(EXTERNAL, "_LoaderBasics.exec_module", 1026), Location("/srv/app.py", "loads", 9)],
            True,
        ),
        ([CALLS, Location(EXTERNAL, "ExtensionFileLoader.create_module", 1314)], True),
        ([CALLS, COMPILES, Location("/lib/python3/py_compile.py", "compile", 140), BODY], False),
        ([Location("/srv/app.py", "_find_and_load", 9), BODY], False),
        ([], False),
    ],
)
def test_only_the_functions_of_an_import_are_one(lines: list[Location], is_importing: bool) -> None:
    assert import_lines.is_importing(lines) == is_importing
