"""What a command's own file may change before its imports, and what statements of other modules do."""

from __future__ import annotations

import ast

import pytest

from unsnarl.warm.importing.own_changes import Changes, Source, written


@pytest.mark.parametrize(
    ("text", "is_change"),
    [
        ("os.environ['X'] = '1'", True),
        ("os.environ.setdefault('X', '1')", True),
        ("os.environ.pop('X')", True),
        ("os.environ.update(X='1')", True),
        ("os.environ |= {'X': '1'}", True),
        ("del environ['X']", True),
        ("env = os.environ\nenv['X'] = '1'", True),
        ("prepare(os.environ, 'X')", True),
        ("from os import environ as e\ne['X'] = '1'", True),
        ("os.putenv('X', '1')", True),
        ("os.environb[b'X'] = b'1'", True),
        ("os.environ.get('X')", False),
        ("os.environ['X']", False),
        ("'X' in os.environ", False),
        ("[name for name in os.environ.items() if name == 'X']", False),
        ("subprocess.run(x, env={**os.environ.copy(), 'X': 1})", False),
        ("'X' + environment", False),
    ],
)
def test_a_file_changes_a_variable_if_it_does_more_than_read(text: str, is_change: bool) -> None:
    assert ("X" in Changes(text.encode(), ast.parse(text)).variables) == is_change


def test_the_directory_and_a_command_without_a_source() -> None:
    assert Changes(b"os.chdir(x)", ast.parse("os.chdir(x)")).of_directory
    assert not Changes().of_directory


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("os.environ['X'] = 1", {"X"}),
        ('os.environ["X"]="1"', {"X"}),
        ("os.environb[ b'X' ] = b''", {"X"}),
        ("os.environ.setdefault('X', '')", {"X"}),
        ("os.environ.pop( 'X', None)", {"X"}),
        ("del os.environ['X']", {"X"}),
        ("os.putenv('X', '1')", {"X"}),
        ("os.environ.update(X='1')", {"X"}),
        ("os.environ.update({'X': '1'}, Y='2')", {"X", "Y"}),
        ("os.environ |= {'X': '1'}", {"X"}),
        ("self.environ['X'] = '1'", {"X"}),
        ("NAME = 'X'\nos.environ[NAME] = '1'", {"X"}),
        ("for name in ('X', 'Y'):\n    os.environ[name] = '1'", {"X", "Y"}),
        ("env = os.environ\nenv['X'] = '1'", {"X"}),
        ("os.environ['X'] == '1'", set[str]()),
        ("environment['X'] = '1'", set[str]()),
        ("os.environ.get('X')", set[str]()),
        ("other.update(X='1')", set[str]()),
        ("env = os.environ.copy()\nenv.update(values)", set[str]()),
        ("environ = dict(os.environ)\nenviron.update(values)", set[str]()),
        ("def app(environ):\n    environ[name] = 1", set[str]()),
        ("self.environ[name] = 1", set[str]()),
        ("self.env = os.environ\nenv = {}\nenv.update(values)", set[str]()),
        ("self.env = os.environ\nself.env = {}\nself.env[name] = 1", set[str]()),
        ("@contextlib.contextmanager\ndef f(name):\n    os.environ[name] = '1'", set[str]()),
        ("class C:\n    def __enter__(self):\n        os.environ[self.name] = '1'", set[str]()),
        ("subprocess.run(x, env=os.environ)", set[str]()),
        ("values = dotenv_values()", set[str]()),
    ],
)
def test_variables_that_a_statement_sets_or_removes(text: str, names: set[str]) -> None:
    found = written([_source(f"import os\n{text}\n")])
    assert (found.names, found.are_any) == (names, False)


@pytest.mark.parametrize(
    "text",
    [
        "os.environ[name] = '1'",
        "os.environ['X' + name] = '1'",
        "os.environ[f'X_{name}'] = '1'",
        "os.environ[NAMES[0]] = '1'",
        "NAME = 'X'\nNAME = other()\nos.environ[NAME] = '1'",
        "def f(NAME):\n    os.environ[NAME] = '1'\nNAME = 'X'",
        "for name, value in values:\n    os.environ[name] = value",
        "os.environ.update(values)",
        "os.environ.update({**values})",
        "os.environ.update(**values)",
        "os.environ |= values",
        "os.environ.setdefault(name, '')",
        "os.environ.pop(name, None)",
        "del os.environ[name]",
        "os.environ.clear()",
        "os.putenv(name, '1')",
        "from os import environ as e\ne[name] = '1'",
        "import encoding\nencoding.environ[name] = '1'",
        "class Env:\n    ENVIRON = os.environ\n    def f(cls):\n        cls.ENVIRON.setdefault(name, '')",
        "def f(env=None):\n    env = env or os.environ\n    env[name] = '1'",
        "def f(env=os.environ):\n    env[name] = '1'",
        "load_dotenv()",
        "dotenv.load_dotenv(path)",
        "from dotenv import load_dotenv as load\nload()",
        "environ.Env.read_env()",
    ],
)
def test_a_name_that_is_put_together_at_run_time_may_be_any(text: str) -> None:
    assert written([_source(f"import os\n{text}\n")]).are_any
    source = f"import os\n{text}\n".encode()
    assert Changes(source, ast.parse(source)).has("X")
    is_of_file = "dotenv" in text or "read_env" in text
    assert written([_source(f"import os\n{text}\n", is_installed=True)]).are_any == is_of_file


@pytest.mark.parametrize(
    ("text", "is_any"),
    [
        ("prepare(os.environ)", True),
        ("prepare(values=os.environ)", True),
        ("with mock.patch.dict(os.environ, {'X': '1'}): pass", True),
        ("with mock.patch.dict('os.environ', {'X': '1'}): pass", True),
        ("os.environ = values", True),
        ("@contextlib.contextmanager\ndef f(name):\n    os.environ[name] = '1'", True),
        ("dict(os.environ)", False),
        ("subprocess.run(x, env=os.environ)", False),
        ("print(os.environ)", False),
        ("os.environ['X'] = '1'", False),
        ("os.environ.get(name)", False),
    ],
)
def test_the_own_file_may_hand_the_environment_on(text: str, is_any: bool) -> None:
    source = f"import os\n{text}\n".encode()
    assert Changes(source, ast.parse(source)).are_any == is_any


def test_a_body_that_was_run_under_watch_sets_what_was_seen() -> None:
    body = "import os\nos.environ[name] = '1'\n"
    assert not written([_source(body, is_run=True)]).are_any
    assert written([_source("import os\ndef f(name):\n    os.environ[name] = '1'\n", is_run=True)]).are_any


def test_of_an_installed_package_only_some_names_are_wanted() -> None:
    text = "import os\nos.environ['X_1'] = os.environ['Y'] = '1'\n"
    installed = _source(text, is_installed=True)
    assert not written([installed], ["'X'"]).names
    assert written([installed], ["X_"]).names == {"X_1", "Y"}
    assert written([_source(text)], []).names == {"X_1", "Y"}
    assert written([_source("load_dotenv()", is_installed=True)], []).are_any


def test_of_an_installed_package_any_name_counts_until_a_run_was_observed() -> None:
    text = "import os\ndef f(name):\n    os.environ[name] = '1'\n"
    assert written([_source(text, is_installed=True)], ["'X'"], is_observed=False).are_any
    assert not written([_source(text, is_installed=True)], ["'X'"]).are_any
    library = Source(text.encode(), is_run=True, is_installed=True, is_library=True)
    assert not written([library], ["'X'"], is_observed=False).are_any


def test_a_source_that_cannot_be_parsed_sets_nothing() -> None:
    assert not written([_source("os.environ[name] = = 1\n")]).are_any


def _source(text: str, *, is_run: bool = False, is_installed: bool = False) -> Source:
    return Source(text.encode(), is_run=is_run, is_installed=is_installed)
