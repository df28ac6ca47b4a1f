"""Recipes are read back from their text, and make values of the right kind; their classes are dataclasses."""

import dataclasses
import os
import time

import pytest

from unsnarl.warm import renewals
from unsnarl.warm.dataclass import dataclass
from unsnarl.warm.renewals import Recipe

RECIPES = [
    *renewals.CLOCKS, renewals.WORKING_DIRECTORY, renewals.PROCESS_ID, renewals.UUID, renewals.TEMPORARY_DIRECTORY,
    renewals.USER_BASE, renewals.USER_SITE, Recipe(renewals.HEX, 8), Recipe(renewals.DECIMAL, 12),
    renewals.kept("A"), renewals.kept("A", "/b: c"), renewals.kept("A", is_bytes=True), renewals.kept(".", "/b"),
]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_recipe_is_read_back(recipe: Recipe) -> None:
    assert Recipe.parse(str(recipe)) == recipe


@pytest.mark.parametrize("text", ["", "hex", "hexa", "uuid5", "sleep", "env:", "env:/x", "cwd:x"])
def test_an_unknown_recipe_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Recipe.parse(text)


@pytest.mark.parametrize("source", ["a/b", "tab\t", "line\n"])
def test_a_variable_with_an_odd_name_has_no_recipe(source: str) -> None:
    with pytest.raises(ValueError, match="no recipe"):
        renewals.kept(source)


def test_kept_values_are_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEPT", "/home/x")
    assert renewals.kept("KEPT").value() == "/home/x"
    assert renewals.kept("KEPT", "/y", is_bytes=True).value() == b"/home/x/y"
    assert renewals.kept(".", "/y").value() == os.path.join(os.getcwd(), "y")
    monkeypatch.delenv("KEPT")
    assert renewals.kept("KEPT").value() is None
    monkeypatch.chdir("/")
    assert (renewals.kept(".").value(), renewals.kept(".", "/y").value()) == ("/", "/y")


def test_values_are_of_this_moment_and_process() -> None:
    before = time.monotonic_ns()
    now = Recipe("monotonic_ns").value()
    assert isinstance(now, int)
    assert before <= now <= time.monotonic_ns()
    assert (renewals.PROCESS_ID.value(), renewals.WORKING_DIRECTORY.value()) == (os.getpid(), os.getcwd())
    digits, number = str(Recipe(renewals.HEX, 9).value()), str(renewals.UUID.value())
    assert (len(digits), len(number), number[12]) == (9, 32, "4")
    assert not (digits + number).strip("0123456789abcdef")


@dataclass(frozen=True)
class Ours:
    """One with a default."""

    first: int
    second: str = "two"


@dataclasses.dataclass(frozen=True)
class Theirs:
    """The same, by the standard library."""

    first: int
    second: str = "two"


@pytest.mark.parametrize("kind", [Ours, Theirs])
def test_a_frozen_dataclass_behaves_as_the_standard_librarys(kind: type[Ours]) -> None:
    one = kind(1)
    assert (one.first, one.second, one == kind(1, "two"), one == kind(second="two", first=1)) == (1, "two", True, True)
    assert one != kind(2)
    assert len({one, kind(1), kind(1, "2")}) == 2
    assert repr(one) == f"{kind.__name__}(first=1, second='two')"
    with pytest.raises(AttributeError):
        one.first = 2  # type: ignore[misc]
    for arguments in ([], [1, "2", 3]):
        with pytest.raises(TypeError):
            kind(*arguments)  # type: ignore[arg-type]
