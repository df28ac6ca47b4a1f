"""Imports that keep a copy of the environment, which each worker fills again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

SCRIPT = "import sys, mod\nprint(mod.shown(), '_unsnarl_warm' in sys.modules)\n"
SHOWN = "def shown():\n    return [(name, value) for name, value in kept().items() if name[:2] in ('Q_', 'R_')]\n"
# How a module keeps a copy, and the function that returns it.
KEPT = {
    "a global": "COPY = os.environ.copy()\ndef kept(): return COPY\n",
    "an attribute": "class Env:\n    def __init__(self): self._curr = os.environ.copy()\nENV = Env()\n"
    "def kept(): return ENV._curr\n",
    "a default argument": "def kept(environ=os.environ.copy()): return environ\n",
    "a method that is kept, too": "copy = os.environ.copy\nCOPY = copy()\n"
    "def kept():\n    assert copy() == os.environ\n    return COPY\n",
    "bytes": "COPY = os.environb.copy()\n"
    "def kept(): return {os.fsdecode(name): os.fsdecode(value) for name, value in COPY.items()}\n",
    "with a change": "COPY = os.environ.copy()\nCOPY['Q_NEW'] = 'set'\nCOPY.pop('Q_GONE', None)\n"
    "def kept(): return COPY\n",
    "after a change": "os.environ['Q_NEW'] = 'set'\nCOPY = os.environ.copy()\ndel os.environ['Q_NEW']\n"
    "def kept(): return COPY\n",
}
CALLERS: tuple[dict[str, str], ...] = ({}, {"Q_A": "1"}, {"R_B": "2", "Q_A": "3\udcff"}, {"Q_A": ""})


def _module(rig: Rig, text: str) -> None:
    (rig.directory / "bin" / "mod.py").write_text(f"import os\n{text}")


@pytest.mark.parametrize("how", KEPT)
def test_one_server_fills_a_kept_copy_for_each_caller(rig: Rig, how: str) -> None:
    _module(rig, KEPT[how] + SHOWN)
    script = rig.script("copies", SCRIPT)
    rig.start(script)
    for more in CALLERS:
        env = rig.env | more
        plain, warm = rig.plain(script, env=env), rig.served(script, env=env)
        assert warm.stdout == plain.stdout.replace(b"False\n", b"True\n"), rig.log()
    assert len(rig.servers()) == 1


@pytest.mark.parametrize(
    "change", ["COPY['Q_A'] = 'set'", "COPY.pop('Q_A', 0)", "COPY.setdefault('Q_A', 'set')", "COPY |= {'Q_A': 'set'}"]
)
def test_a_changed_variable_belongs_to_the_key(rig: Rig, change: str) -> None:
    _module(rig, f"COPY = os.environ.copy()\n{change}\ndef kept(): return COPY\n{SHOWN}")
    script = rig.script("copies", SCRIPT)
    # The first caller has the very value that the import sets.
    for more in ({"Q_A": "set"}, {}, {"Q_A": "other"}):
        rig.start(script, env=rig.env | more)
        plain, warm = (run(script, env=rig.env | more) for run in (rig.plain, rig.served))
        assert warm.stdout == plain.stdout.replace(b"False\n", b"True\n"), rig.log()
    assert len(rig.servers()) == 3


@pytest.mark.parametrize(
    "read",
    [
        "COPY['Q_A'] if 'Q_A' in COPY else None",
        "COPY.get('Q_A', 'none') + '.'",
        "'%(Q_A)s.' % COPY if 'Q_A' in COPY else None",
    ],
)
def test_a_variable_that_is_read_of_a_copy_belongs_to_the_key(rig: Rig, read: str) -> None:
    _module(rig, f"COPY = os.environ.copy()\nVALUE = str({read})\ndef shown(): return VALUE, COPY.get('Q_A')\n")
    script = rig.script("copies", SCRIPT)
    for more in ({}, {"Q_A": "1"}, {"Q_A": "2"}):
        env = rig.env | more
        rig.start(script, env=env)
        plain, warm = rig.plain(script, env=env), rig.served(script, env=env)
        assert warm.stdout == plain.stdout.replace(b"False\n", b"True\n"), rig.log()
    assert rig.served(script, env=rig.env | {"Q_A": "1", "ELSE": "1"}).returncode == 0


WHOLE = {
    "dict(copy)": "COPY = dict(os.environ.copy())\n",
    "a mapping in a call": "COPY = dict(**os.environ.copy())\n",
    "a display": "COPY = {**os.environ.copy()}\n",
    "a copy of the copy": "COPY = os.environ.copy().copy()\n",
    "a union": "COPY = {} | os.environ.copy()\n",
    "the union the other way": "COPY = os.environ.copy() | {}\n",
    "another dictionary's update": "COPY = {}\nCOPY.update(os.environ.copy())\n",
    "a copy by its module": "import copy\nCOPY = copy.copy(os.environ.copy())\n",
    "its names": "COPY = list(os.environ.copy())\n",
    "its size": "COPY = os.environ.copy()\nSIZE = len(COPY)\n",
    "its text": "COPY = repr(os.environ.copy())\n",
    "a comparison": "COPY = os.environ.copy()\nSAME = COPY == {}\n",
    "the attributes of an object": "class Env: pass\nENV = Env()\nENV.__dict__ = os.environ.copy()\nQ = ENV.PATH\n",
    "the environment itself": "os.environ = os.environ.copy()\n",
    "globals": "COPY = os.environ.copy()\nexec('PATH', COPY)\n",
    "a copy of the environment by its items": "COPY = dict(os.environ.items())\n",
}


@pytest.mark.parametrize("how", WHOLE)
def test_a_copy_that_is_read_as_a_whole_is_left_to_the_runs(rig: Rig, how: str) -> None:
    _module(rig, WHOLE[how] + "def shown(): return 1\n")
    script = rig.script("copies", SCRIPT)
    rig.start(script)
    assert b"mod reads the whole environment" in rig.verb("why", script).stdout
    assert rig.served(script).stdout == rig.plain(script).stdout.replace(b" False\n", b" True\n")


@pytest.mark.parametrize(
    "script",
    [
        "import os\nos.environ['Q_A'] = 'of the command'\nimport sys, mod\n",
        "import sys, json\njson.loads('{}')\nimport mod\n",
        "import sys\nif sys.version_info > (3,): import json\nimport mod\n",
        "import sys\ntry: import no_such_module\nexcept ImportError: import json\nimport mod\n",
        "import sys\n@staticmethod\ndef f(): pass\nimport mod\n",
        "import sys\ndef f(x=sys.flags): pass\nimport mod\n",
        "import sys\nsys.dont_write_bytecode = True\nimport mod\n",
        "import sys\nx = sys.flags\nimport mod\n",
        "import sys\nclass C: x = 1\nimport mod\n",
    ],
)
def test_a_copy_that_is_made_after_code_of_the_command_is_not_kept(rig: Rig, script: str) -> None:
    _module(rig, KEPT["a global"] + SHOWN)
    path = rig.script("copies", script + "print(mod.shown(), '_unsnarl_warm' in sys.modules)\n")
    rig.start(path)
    assert b"mod reads the whole environment" in rig.verb("why", path).stdout
    assert rig.served(path).stdout == rig.plain(path).stdout.replace(b" False\n", b" True\n")


@pytest.mark.parametrize(
    "script",
    [
        '"""A command."""\nimport sys\n__version__ = "1"\nWORDS = None\nimport mod\n',
        "import sys\ndef f(x=1, *, y='2'): return x\nimport mod\n",
        "import sys\nif __name__ == '__main__':\n    import mod\n",
        "import sys, mod\nsys.environ_of_the_program = 1\n",
    ],
)
def test_a_copy_that_is_made_before_any_code_of_the_command_is_kept(rig: Rig, script: str) -> None:
    _module(rig, KEPT["a global"] + SHOWN)
    path = rig.script("copies", script + "print(mod.shown(), '_unsnarl_warm' in sys.modules)\n")
    rig.start(path)
    for more in CALLERS[:2]:
        env = rig.env | more
        plain, warm = rig.plain(path, env=env), rig.served(path, env=env)
        assert warm.stdout == plain.stdout.replace(b"False\n", b"True\n"), rig.log()


def test_a_module_of_some_runs_that_changes_a_copy_is_not_imported_ahead(rig: Rig) -> None:
    _module(rig, KEPT["a global"] + SHOWN)
    (rig.directory / "bin" / "late.py").write_text("import mod\nmod.COPY['Q_A'] = 'by late'\n")
    text = "import mod\ndef main():\n    print(mod.shown())\n    import late\n    print(mod.shown())\nmain()\n"
    path = rig.script("copies", text)
    rig.verb("start", "--", path)
    assert rig.warm(path).stdout == rig.plain(path).stdout == b"[]\n[('Q_A', 'by late')]\n"


def test_a_module_of_some_runs_copies_the_environment_as_the_run_has_changed_it(rig: Rig) -> None:
    _module(rig, KEPT["a global"] + SHOWN)
    text = "import os, sys\ndef main():\n    os.environ['Q_A'] = 'of the command'\n    import mod\n"
    path = rig.script("copies", f"{text}    print(mod.shown(), '_unsnarl_warm' in sys.modules)\nmain()\n")
    rig.start(path)
    for _ in range(3):
        assert rig.served(path).stdout == b"[('Q_A', 'of the command')] True\n", rig.log()


# The import behaves otherwise where it is watched: learning is wrong.
UNSEEN = {
    "a copy": "COPY = {} if type(os.environ).__name__ == 'Watched' else os.environ.copy()\n",
    "a change": "COPY = os.environ.copy()\nif type(COPY) is dict:\n    COPY['Q_A'] = 'set'\n",
}


@pytest.mark.parametrize("what", UNSEEN)
def test_what_learning_has_not_seen_is_not_served(rig: Rig, what: str) -> None:
    _module(rig, f"{UNSEEN[what]}def kept(): return COPY\n{SHOWN}")
    script = rig.script("copies", SCRIPT)
    assert rig.verb("start", "--", script).returncode == 1
    assert b"mod copies the environment in a way that was not learned" in rig.verb("why", script).stdout
    assert rig.warm(script).stdout == rig.plain(script).stdout


def test_an_import_that_replaces_the_method_finds_its_own_in_a_run(rig: Rig) -> None:
    _module(
        rig, "os._Environ.copy = lambda self: {'Q_A': 'of the import'}\ndef kept(): return os.environ.copy()\n" + SHOWN
    )
    script = rig.script("copies", SCRIPT)
    for _ in range(3):
        assert rig.warm(script).stdout.startswith(b"[('Q_A', 'of the import')]"), rig.log()
    rig.verb("start", "--", script)
    assert rig.warm(script).stdout.startswith(b"[('Q_A', 'of the import')]"), rig.log()
