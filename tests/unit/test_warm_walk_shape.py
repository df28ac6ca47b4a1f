"""Which loops over names do nothing with those that lack a beginning."""

from __future__ import annotations

import pytest

from unsnarl.warm.learning import walk_shape

HARMLESS = (
    "{k[2:].lower(): v for k, v in env.items() if k.startswith(p)}",
    "[k for k in env if k.startswith(('A_', 'B_')) if k]",
    "(v for k, v in env.items() if k.startswith(p) and v)",
    "[k for k in env.keys() if k.startswith(p) or k.startswith('B_') and k]",
    "any(k.startswith(p) for k in env)",
    "[k for k in list(env) if k.startswith(p)]",
)
OTHERS = (
    "[k for k in env if not k.startswith(p)]",
    "[k for k in env if k and k.startswith(p)]",
    "[k for k in env if k.startswith(p) or k]",
    "[k for k in env if k.startswith(p) is False]",
    "[k for k in env if k.startswith(p(k))]",
    "[k for k in env if k.startswith(k)]",
    "[k for k in env if k.startswith(next(p))]",
    "[k for k in env if k.startswith(p, 1)]",
    "[v for k, v in env.items() if v.startswith(p)]",
    "[k for k in env]",
    "[k.startswith(p) for k in env]",
    "sorted(k.startswith(p) for k in env)",
    "any(not k.startswith(p) for k in env)",
    "[k for a in b for k in env if k.startswith(p)]",
    "[k for k in other if k.startswith(p)]",
    "[k for at, k in enumerate(env) if k.startswith(p)]",
)
STATEMENTS = {
    "def f():\n for k, v in env.items():\n  if k.startswith(p):\n   use(k, v)\n return 1\n": True,
    "def f():\n for k in env:\n  if not k.startswith(p):\n   continue\n  use(k)\n for k in [1]:\n  use(k)\n": True,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n  elif k.startswith('B_'): b()\n": True,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n  else: b()\n": False,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n  count()\n": False,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n return k\n": False,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n else: use(k)\n": False,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n return lambda: k\n": False,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n return locals()\n": False,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n k += 'x'\n": False,
    "def f():\n global k\n for k in env:\n  if k.startswith(p): a()\n": False,
    "def f():\n for k in env:\n  if k.startswith(p): a()\n return [1 for k in k]\n": False,
}


def left(source: str, iterated: str, *shadowed: str) -> frozenset[str] | None:
    """Judge the loop over an expression, wherever the instruction is said to be."""
    line = next(at for at, text in enumerate(source.split("\n"), 1) if iterated in text)
    column = source.split("\n")[line - 1].index(iterated)
    at = (line, line, column, column + len(iterated))
    return walk_shape.variables_left(source.encode(), at, {"env"}, is_passed=False, shadowed={*shadowed})


def iterated(source: str) -> str:
    known = ("enumerate(env)", "list(env)", "env.items()", "env.keys()", "env", "other")
    return next(one for one in known if one in source)


@pytest.mark.parametrize("source", HARMLESS)
def test_a_loop_that_only_looks_for_a_beginning_is_known(source: str) -> None:
    assert left(source, iterated(source)) == frozenset()


@pytest.mark.parametrize("source", OTHERS)
def test_any_other_loop_may_do_something_with_the_names(source: str) -> None:
    assert left(source, iterated(source)) is None


@pytest.mark.parametrize("source", STATEMENTS)
def test_a_statement_looks_for_a_beginning_first_and_its_variables_are_not_read(source: str) -> None:
    assert (left(source, iterated(source)) is not None) is STATEMENTS[source]


def test_a_function_of_the_programs_own_is_not_the_built_in_one() -> None:
    assert left("any(k.startswith(p) for k in env)", "env", "any") is None
    assert left("[k for k in list(env) if k.startswith(p)]", "list(env)", "list") is None


def test_a_statement_leaves_its_variables() -> None:
    assert left("for k, v in env.items():\n if k.startswith(p):\n  use(v)\n", "env.items()") == frozenset("kv")
