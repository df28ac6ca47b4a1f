"""Refusals of ``unsnarl run --green``, before the program starts and at the import, and imports it accepts."""

import sys
from typing import TYPE_CHECKING

import pytest

from tests.integration.test_run_green import SETTLED, assert_refused, green, lines_of, run_green
from unsnarl.green import refusals

if TYPE_CHECKING:
    from tests.conftest import Programs


def installed(programs: "Programs", *names: str) -> dict[str, str]:
    """Return an environment in which libraries by these names are installed."""
    for name in names:
        programs.write(f"site-packages/{name}/__init__.py", "print('this must not run')")
    return {"PYTHONPATH": str(programs.directory / "site-packages")}


@green
def test_a_program_that_cannot_be_served_does_not_start(programs: "Programs") -> None:
    programs.write("app.py", "print('this must not run')\nfrom grpc import aio\n")
    env = installed(programs, "grpc", "PyQt6")
    assert_refused(programs.run("--green", "app.py", env=env), 1, "'app.py'", "line 2", "grpc")
    assert_refused(programs.run("--green", "-c", "import os, PyQt6.QtWidgets", env=env), 1, "PyQt6")
    for text in ("import unsnarl.ipc", "from unsnarl import ipc", "from unsnarl.ipc import Lock"):
        assert_refused(programs.run("--green", "-c", text), 1, "unsnarl.ipc", "blocks the process")


@green
def test_what_is_not_there_or_the_programs_own_is_not_refused(programs: "Programs") -> None:
    for directory in ("", "elsewhere/"):  # found next to the program, not in the current directory
        programs.write(f"{directory}ray.py", "def shoot(): return 'hit'")
        programs.write(f"{directory}torch/light.py", "ON = True")
        programs.write(f"{directory}app.py", "import ray, torch.light\nprint(ray.shoot(), torch.light.ON)")
    assert programs.run("--green", "app.py") == (0, b"hit True\n", b"")
    assert programs.run("--green", "elsewhere/app.py") == (0, b"hit True\n", b"")
    text = """
from importlib.util import find_spec
print(find_spec("no_such_module_jax"), find_spec("tensorflow"))
try:
    import tensorflow
except ModuleNotFoundError as error:
    print(error)
"""
    assert lines_of(run_green(programs, text)) == ["None None", "No module named 'tensorflow'"]
    missing = programs.run("--green", "-c", "import tensorflow")
    assert (missing.status, b"ModuleNotFoundError" in missing.stderr) == (1, True)


@green
def test_a_library_can_be_looked_for_and_not_be_imported(programs: "Programs") -> None:
    text = """
from importlib.util import find_spec
print(find_spec("grpc").origin.endswith("site-packages/grpc/__init__.py"), "grpc" in sys.modules)
for name in ("grpc", "grpc", "unsnarl.ipc"):
    try:
        __import__(name)
    except ImportError as refusal:
        print(refusal.name, "green threads" in str(refusal), name in sys.modules)
"""
    script = programs.write("app.py", SETTLED + text)
    shown = programs.run("--green", script, env=installed(programs, "grpc"))
    assert lines_of(shown) == ["True False", "grpc True False", "grpc True False", "unsnarl.ipc True False"]


@green
def test_patching_leaves_multiprocessing_alone(programs: "Programs") -> None:
    """Its own primitives are refused on use, and unsnarl's would be too."""
    text = """
import multiprocessing
try:
    multiprocessing.Lock()
except ImportError as refusal:
    print(refusal.name)
"""
    assert lines_of(run_green(programs, text, "--patch")) == ["multiprocessing.synchronize"]


@green
def test_an_import_that_cannot_be_served_fails_where_it_is(programs: "Programs") -> None:
    text = """
try:
    from multiprocessing import synchronize
except ImportError as refusal:
    print(refusal.name, "green threads" in str(refusal))
try:
    import tkinter
except ImportError as refusal:
    print(refusal.name)
"""
    assert lines_of(run_green(programs, text)) == ["multiprocessing.synchronize True", "tkinter"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import grpc", [(1, "grpc")]),
        ("import os\nimport torch.nn as nn, uvloop", [(2, "torch"), (2, "uvloop")]),
        ("from multiprocessing import pool, Process", []),
        ("from multiprocessing import synchronize, Process", [(1, "multiprocessing.synchronize")]),
        ("from multiprocessing.queues import Queue", [(1, "multiprocessing.queues"), (1, "multiprocessing.queues")]),
        ("import grpcio_tools, triosomething, multiprocessing", []),
        ("from . import trio", []),
        ("try:\n  import trio\nexcept ImportError: pass", []),
        ("def f():\n  import trio", []),
        ("import trio (", []),
        ("import trio\0", []),
        ("", []),
    ],
)
def test_what_a_text_imports_outright(programs: "Programs", text: str, found: list[tuple[int, str]]) -> None:
    path = [*installed(programs, "grpc", "torch", "uvloop", "trio").values(), *sys.path]
    assert list(refusals.in_source(text, path)) == found
    assert list(refusals.in_source(text.encode(), path)) == found
    assert list(refusals.in_source(text, [])) == [], "nothing is there"


@green
def test_a_pool_is_refused_where_it_is_made(programs: "Programs") -> None:
    """Programs import the module that may never make a pool."""
    text = """
from multiprocessing import Pool, pool
for make in (Pool, pool.Pool, pool.ThreadPool):
    try:
        make(1)
    except ImportError as refusal:
        print(refusal.name, "green threads" in str(refusal))
"""
    assert lines_of(run_green(programs, text)) == ["multiprocessing.queues True"] * 3


@green
def test_what_waits_in_native_code_is_named_once(programs: "Programs") -> None:
    names = ("psycopg2", "MySQLdb", "pyodbc", "zmq")
    for name in names:
        programs.write(f"site-packages/{name}/__init__.py", "WORKS = True")
    programs.write("own/pyodbc.py", "WORKS = True")
    text = "import psycopg2, MySQLdb, pyodbc, zmq, sys; del sys.modules['zmq']; import zmq; print(zmq.WORKS)"
    shown = programs.run("--green", "-c", text, env={"PYTHONPATH": str(programs.directory / "site-packages")})
    assert (shown.status, shown.stdout) == (0, b"True\n")
    said = shown.complaint.splitlines()
    assert [line.split(": ")[:2] for line in said] == [["unsnarl", name] for name in names]
    assert all("native code" in line and "hint: " in line for line in said)
    own = programs.run("--green", "-c", "import pyodbc", env={"PYTHONPATH": str(programs.directory / "own")})
    assert own == (0, b"", b"")


@green
def test_a_library_in_any_directory_where_pip_has_put_it(programs: "Programs") -> None:
    programs.write("vendored/grpc/__init__.py", "print('this must not run')")
    programs.write(
        "vendored/grpcio-1.0.dist-info/RECORD", "grpc/__init__.py,sha256=0,1\ngrpcio-1.0.dist-info/RECORD,,\n"
    )
    programs.write("vendored/ray.py", "print('the own one')")
    env = {"PYTHONPATH": str(programs.directory / "vendored")}
    assert_refused(programs.run("--green", "-c", "import grpc", env=env), 1, "grpc")
    assert programs.run("--green", "-c", "import ray", env=env) == (0, b"the own one\n", b"")


@green
def test_a_warning_of_the_compiler_is_said_once(programs: "Programs") -> None:
    """The interpreter shows them, not the check of the program's source."""
    script = programs.write("app.py", 'print("\\d")')
    assert programs.run("--green", script) == programs.python(script)


@green
def test_what_gevent_takes_away_is_explained(programs: "Programs") -> None:
    text = """
import select, selectors
print(hasattr(select, "epoll"), getattr(selectors, "EpollSelector", None))
for module, name in ((select, "epoll"), (selectors, "EpollSelector"), (select, "epol")):
    try:
        getattr(module, name)
    except AttributeError as error:
        print("hint: " in str(error), str(error).split(" in ")[0])
"""
    assert lines_of(run_green(programs, text)) == [
        "False None",
        "True module 'select' has no attribute 'epoll'",
        "True module 'selectors' has no attribute 'EpollSelector'",
        "False module 'select' has no attribute 'epol'",
    ]
