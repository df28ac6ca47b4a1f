"""Quiet modules: bodies that only bind names. A statement not known to be harmless is not quiet."""

import ast

import pytest

from unsnarl.pack import quiet

QUIET = [
    '"""Words."""\n__all__ = ["a"]\na = 1\n',
    "import re\nfrom collections import namedtuple as nt\nP = re.compile('x')\nT = nt('T', 'a b')\n",
    "from functools import lru_cache\n@lru_cache(maxsize=None)\ndef f(a=1): return exit()\n",
    "class A(Exception):\n    x = 1\n    @property\n    def p(self): pass\n    @p.setter\n    def p(self, v): pass\n",
    "import enum\nclass A(enum.Enum):\n    x = 1\nclass B(A): pass\n",
    "try:\n    import json\nexcept ImportError:\n    json = None\n",
    "import sys\nif sys.version_info > (3, 1):\n    x = {}\n    x['a'] = 2\n",
    "x = []\nx.append(3)\nfor one in (1, 2):\n    y = one\ny = ','.join('ab')\nf = lambda: print()\n",
    "def f(): pass\nf.mark = 1\n",
    "import x\nfrom x import y\nz = y\nw = z\nx2 = x\nv = [y, (1, z)]\nt = {'a': y}\ndef f(a=y): return a.b + x.c\n",
    "from typing import Dict, Type, TypeVar as V\nfrom x import y\nA = Type[y]\nB = Dict[str, y]\nT = V('T', y, A)\n",
    "import functools\nfrom x import y\nf = functools.partial(y, 1)\ng = lambda: y.z[0]\n",
    "from typing import Generic, TypeVar\nT = TypeVar('T')\nclass A(Generic[T]):\n    def __init__(self): self.a = 1\n",
    "import stat\nX = stat.S_IRUSR | stat.S_IWUSR\nY = [bit for bit in (X, 2)]\nclass A:\n    x = X\n",
    "import x\na: x.y = None\ndef f(a: x.y | None = None) -> x.z[int]: pass\n",
]
LOUD = {
    "a base with __init_subclass__": "class A:\n    def __init_subclass__(cls): print()\nclass B(A): pass\n",
    "a hook that is assigned": "class A:\n    __init_subclass__ = classmethod(lambda cls: print())\nclass B(A): pass\n",
    "an index of its own": "class A:\n    def __class_getitem__(cls, key): print()\nB = A[1]\n",
    "a descriptor with __set_name__": "class D:\n    def __set_name__(self, a, b): print()\n",
    "a foreign object in a class": "from x import y\nclass A:\n    z = y\n",
    "an enumeration with members made by itself": (
        "import enum\nclass A(enum.Enum):\n    def __init__(self, a): print()\nclass B(A):\n    x = 1\n"
    ),
    "an enumeration with members made by another": (
        "import enum\nclass M:\n    def __init__(self, a): print()\nclass B(M, enum.Enum):\n    x = 1\n"
    ),
    "reading a value of a foreign module": "import config\nLIMIT = config.limit\n",
    "reading a value by an alias": "import config\nc = config\nLIMIT = c.limit\n",
    "reading a part of a value": "from config import values\nLIMIT = values['limit']\n",
    "a foreign class with an index": "from x import Base\nY = Base[int]\n",
    "a foreign class with an operator": "from x import Base\nY = Base | None\n",
    "a comparison with a foreign object": "from x import y\nif y > 1:\n    z = 1\n",
    "the truth of a foreign object": "from x import y\nz = 1 if y else 2\n",
    "an iteration over a foreign object": "from x import y\nz = [1 for one in y]\n",
    "a loop over a foreign object": "from x import y\nfor z in y:\n    pass\n",
    "a foreign object as a key": "from x import y\nz = {y: 1}\n",
    "a foreign object, unpacked": "from x import y\na, b = y\n",
    "a foreign object, unpacked into a list": "from x import y\na = [*y]\n",
    "a foreign object, unpacked into a table": "from x import y\na = {**y}\n",
    "a foreign object as text": "from x import y\na = f'{y}'\n",
    "a foreign object for an argument": "from x import y\na = sorted(y)\n",
    "a base by an alias": "from x import Plugin\nBase = Plugin\nclass A(Base): pass\n",
    "a call": "print()\n",
    "an unknown call": "import x\ny = x.make()\n",
    "a call of its own": "def f(): pass\nf()\n",
    "a logger, which a later configuration treats differently": "import logging\nlog = logging.getLogger('x')\n",
    "an exit function": "import atexit\natexit.register(print)\n",
    "a function that is called": "import x\ny = sorted([1], key=x.f)\n",
    "a function that is mapped": "import x\ny = list(map(x.f, [1]))\n",
    "a class by its type": "import x\nA = type('A', (x.Plugin,), {})\n",
    "a rebound builtin": "def sorted(x): pass\ny = sorted([])\n",
    "a patch": "import socket\nsocket.socket = None\n",
    "an entry elsewhere": "import x\nx.TABLE['a'] = 1\n",
    "an addition elsewhere": "from x import table\ntable += [1]\n",
    "an addition to an alias": "import x\ny = x.table\ny += [1]\n",
    "an entry by an alias": "import x\ny = x.table\ny['a'] = 1\n",
    "an append by an alias of a part": "import x\nfor y in x.tables:\n    y.append(1)\n",
    "an append elsewhere": "from x import table\ntable.append(1)\n",
    "a decorator": "import x\n@x.register\ndef f(): pass\n",
    "a base that may register": "import x\nclass A(x.Plugin): pass\n",
    "a metaclass": "class A(metaclass=B): pass\n",
    "a class body": "class A:\n    print()\n",
    "a default": "def f(a=print()): pass\n",
    "sys.modules": "import sys\nsys.modules[__name__] = None\n",
    "reading the environment": "import os\nx = os.environ\n",
    "reading it otherwise": "from os import environ\nx = environ\n",
    "reading arguments": "import sys\nx = sys.argv\n",
    "a module's __getattr__": "def __getattr__(name): pass\n",
    "a path": "__path__ = []\n",
    "a star": "from x import *\n",
    "with": "with open('x') as f: pass\n",
    "while": "while x: pass\n",
    "raise": "raise SystemExit\n",
    "a finally": "try:\n    x = 1\nfinally:\n    print()\n",
}


@pytest.mark.parametrize("source", QUIET)
def test_a_body_that_only_binds_is_quiet(source: str) -> None:
    assert quiet.is_quiet(ast.parse(source))


@pytest.mark.parametrize("source", LOUD.values(), ids=LOUD)
def test_any_other_body_is_not(source: str) -> None:
    assert not quiet.is_quiet(ast.parse(source))


def test_what_a_body_imports() -> None:
    tree = ast.parse("import a.b\nfrom . import c\nfrom ..d import e\ndef f(): import g\nclass H:\n    import i\n")
    assert quiet.imported(tree, "p.q.r", is_package=False) == {*("a", "a.b", "p", "p.q", "p.q.c", "p.d", "p.d.e", "i")}
    assert "p.q.r.c" in quiet.imported(tree, "p.q.r", is_package=True)


def test_what_a_body_takes_from_others() -> None:
    tree = ast.parse(
        "import a\nfrom b import c as d\nfrom . import e\nfrom typing import Any\ndef f(): from g import h\n"
    )
    assert quiet.taken(tree, "p.q", is_package=False) == {("b", "c"), ("p", "e")}


def test_a_name_that_is_bound_otherwise_than_by_definitions_may_change() -> None:
    tree = ast.parse(
        "import a.b\nfrom c import d as e\nfrom c import i\nif e:\n    def f(): pass\nelse:\n    f = None\n"
        "def g():\n    global i, j\n    i = k = 1\nclass H:\n    l = 2\n    def m(self): pass\n"
        "for n in o: pass\ntry:\n    p = 1\nexcept e as q: pass\n"
    )
    assert quiet.bound(tree) == ({"a", "e", "g", "H"}, {"f", "i", "j", "n", "p", "q"})


def test_what_is_imported_in_preparation_for_a_failure() -> None:
    tree = ast.parse(
        "import a\ntry:\n    import b\nexcept ImportError:\n    import c\ndef f():\n    with x:\n        import d\n"
    )
    assert quiet.guarded(tree, "m", is_package=False) == {"b", "d"}
