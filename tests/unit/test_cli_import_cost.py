"""Importing unsnarl imports next to nothing, so that it costs next to nothing.

The tests count modules and not milliseconds: the count is the cause, and it is the
same on a slow and on a fast machine.
"""

import subprocess
import sys

import pytest

SHOW_NEW = """\
import sys
before = set(sys.modules)
{statement}
new = sorted(set(sys.modules) - before)
print(*(name for name in new if name.partition(".")[0] != "unsnarl"))
print(*(name for name in new if name.partition(".")[0] == "unsnarl"))
"""


def new_modules(statement: str) -> tuple[list[str], list[str]]:
    """Return the modules that a statement imports in a new interpreter: those of others, and unsnarl's."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", SHOW_NEW.format(statement=statement)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    others, ours = done.stdout.splitlines()
    return others.split(), ours.split()


def test_importing_unsnarl_imports_nothing_else() -> None:
    assert new_modules("import unsnarl") == ([], ["unsnarl"])


@pytest.mark.needs_gil
def test_installing_the_scheduler_imports_nothing_of_the_standard_library() -> None:
    others, _ = new_modules("import unsnarl; unsnarl.gil.install()")
    assert others == []


def test_a_primitive_imports_no_more_than_the_standard_library_for_its_own() -> None:
    others, _ = new_modules("import unsnarl; unsnarl.Lock()")
    # On 3.12, `unsnarl.sync.frozen` imports the built-in collector to find frozen objects.
    known = {"gc"} if sys.version_info[:2] == (3, 12) else set[str]()
    assert set(others) <= {*new_modules("import queue")[0]} | known


def test_the_way_to_the_program_stays_short() -> None:
    others, ours = new_modules("import unsnarl.cli, unsnarl.cli.run")
    assert set(others) <= set(new_modules("import importlib.machinery")[0])
    assert not any("demo" in name or "report" in name or "gil" in name for name in ours)


@pytest.mark.parametrize("name", ["gil", "__version__", "UnsnarlError", "UnsupportedInterpreter"])
def test_public_names_are_there_and_listed(name: str) -> None:
    import unsnarl

    assert getattr(unsnarl, name)
    assert name in dir(unsnarl)
    assert name in unsnarl.__all__


def test_other_names_are_not_there() -> None:
    import unsnarl

    with pytest.raises(AttributeError, match="'unsnarl' has no attribute 'nonsense'"):
        unsnarl.nonsense  # type: ignore[attr-defined]  # noqa: B018
