"""What importing unsnarl brings in: next to nothing, so that it costs next to nothing.

Modules are counted and not milliseconds: the count is the cause, and it is the
same on a slow machine and a fast one.
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
    """Return what a statement imports in a fresh interpreter: others' modules, and ours."""
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
    assert new_modules("import unsnarl") == ([], ["unsnarl", "unsnarl.errors"])


@pytest.mark.needs_gil
def test_installing_the_scheduler_imports_nothing_of_the_standard_library() -> None:
    others, _ = new_modules("import unsnarl; unsnarl.gil.install()")
    assert others == []


def test_a_primitive_imports_no_more_than_the_standard_library_for_its_own() -> None:
    others, _ = new_modules("import unsnarl; unsnarl.Lock()")
    # On 3.12 the collector, which is built in, is asked what the interpreter has frozen (`unsnarl.sync.frozen`).
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
