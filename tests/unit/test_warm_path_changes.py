"""Whatever may change the search path is found, and what only reads it is not."""

from __future__ import annotations

import ast

import pytest

from unsnarl.warm.importing.path_changes import NOWHERE, find


def first(tree: ast.Module, *, is_module: bool) -> tuple[int, int]:
    """Return the place of the first change."""
    return find(tree, is_module=is_module)[0]


CHANGES = [
    "sys.path.insert(0, 'x')",
    "sys.path += ['x']",
    "sys.path[:] = ['x']",
    "sys.path = ['x']",
    "del sys.path[0]",
    "path = sys.path",
    "change(sys.path)",
    "from sys import path",
    "import sys as system\nsystem.path.append('x')",
    "import site\nsite.addsitedir('x')",
    "if not getattr(sys, 'frozen', False):\n    sys.path.append('x')",
    "if getattr(sys, 'frozen', False) or True:\n    sys.path.append('x')",
    "if getattr(sys, 'frozen', None) == None:\n    sys.path.append('x')",
    "if getattr(sys, 'frozen', False):\n    pass\nelse:\n    sys.path.append('x')",
    "def change():\n    sys.path.append('x')",
    "if 'x' not in sys.path:\n    sys.path.append('x')",
    "sys.modules['sqlite3'] = sys.modules.pop('pysqlite3')",
    "from sys import modules",
    "import time\ntime.sleep = print",
    "import time as clock\ndel clock.sleep",
    "import os.path\nos.getcwd = print",
    "import time\nsetattr(time, 'sleep', print)",
    "import time\ndef change():\n    time.sleep = print",
    "import time\ntime.tzset()",
    "import http.client\nhttp.client._MAXHEADERS = 1000",
]
READS = [
    "print(sys.path)",
    "print(' '.join(sys.path))",
    "first = sys.path[0]",
    "is_there = 'x' in sys.path",
    "for entry in sys.path:\n    print(entry)",
    "names = [entry for entry in sys.path]",
    "import os\nos.path.join('a', 'b')",
    "module = sys.modules[__name__]",
    "if 'x' in sys.modules:\n    print(sys.modules.get('x'))",
    "import time\nvalue = time.timezone",
    "sys.stdout = sys.stderr = None",
    "class Own:\n    pass\nOwn.attribute = 1",
    "if getattr(sys, 'frozen', None) == 'console_exe':\n    sys.path.append('x')",
    "if hasattr(sys, 'frozen'):\n    sys.path.append('x')",
]
# As in the `__main__.py` of pip.
OF_MODULES = [
    "if sys.path[0] in ('', os.getcwd()):\n    sys.path.pop(0)",
    "if __package__ == '':\n    sys.path.insert(0, 'x')",
]


# The first entry is the caller's directory with `python -m`, which no server has.
CASES = [(text, False) for text in CHANGES] + [(text, True) for text in CHANGES if text != "del sys.path[0]"]


@pytest.mark.parametrize(("text", "is_module"), CASES)
def test_a_change_is_found(text: str, is_module: bool) -> None:
    assert (2, 0) <= first(ast.parse("import sys\n" + text), is_module=is_module) < NOWHERE


@pytest.mark.parametrize("text", READS)
def test_what_reads_the_path_or_never_runs_is_none(text: str) -> None:
    assert first(ast.parse("import sys\n" + text), is_module=False) == NOWHERE


@pytest.mark.parametrize("text", OF_MODULES)
def test_a_module_that_runs_changes_nothing_by_what_is_for_files(text: str) -> None:
    assert first(ast.parse("import sys\n" + text), is_module=True) == NOWHERE
    assert first(ast.parse("import sys\n" + text), is_module=False) != NOWHERE


@pytest.mark.parametrize(
    ("text", "is_of_process"),
    [
        ("sys.path.insert(0, 'x')", False),
        ("print(sys.modules['x'], sys.modules.get('y'), 'z' in sys.modules)", False),
        ("sys.modules['x'] = None", True),
        ("del sys.modules['x']", True),
        ("sys.modules.pop('x', None)", True),
        ("import time\ntime.sleep = print", True),
        ("import time\ntime.tzset()", True),
    ],
)
def test_what_changes_the_process_is_told_from_what_changes_the_path(text: str, is_of_process: bool) -> None:
    assert find(ast.parse("import sys\n" + text), is_module=False)[1] == is_of_process
