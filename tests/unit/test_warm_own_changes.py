"""What a command's own file may change before its imports, and what statements of other modules do."""

from __future__ import annotations

import ast

import pytest

from unsnarl.warm.importing.own_changes import Changes, written


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
    ("text", "is_write"),
    [
        ("os.environ['X'] = 1", True),
        ('environ["X"]="1"', True),
        ("os.environb[ b'X' ] = b''", True),
        ("os.environ.setdefault('X', '')", True),
        ("os.environ.pop( 'X', None)", True),
        ("del os.environ['X']", True),
        ("os.putenv('X', '1')", True),
        ("os.environ['X'] == '1'", False),
        ("os.environ['XY'] = '1'", False),
        ("environment['X'] = '1'", False),
        ("os.environ.get('X')", False),
    ],
)
def test_a_statement_that_sets_or_removes_a_variable(text: str, is_write: bool) -> None:
    assert written([b"import os", text.encode()], {"X", "Y"}) == ({"X"} if is_write else set())


def test_nothing_is_searched_for_no_variable() -> None:
    assert written([b"os.environ['X'] = 1"], set()) == set()
