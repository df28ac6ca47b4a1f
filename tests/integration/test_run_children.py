"""Processes started with the same interpreter are scheduled, unless ``--no-children`` is given.

Every program prints whether the scheduler is installed in a child it starts in
one of the ways programs start children, then whether it is in itself.
"""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

HERE = """\
def here():
    try:
        import unsnarl.gil
    except ImportError:  # without site
        return False
    return unsnarl.gil.installed()
"""

SHOW = HERE + "print(here(), flush=True)\n"

WAYS = {
    "fork": """
import os
pid = os.fork()
if pid == 0:
    print(here(), flush=True)
    os._exit(0)
os.waitpid(pid, 0)
""",
    "fork of a fork": """
import os
pid = os.fork()
if pid == 0:
    pid = os.fork()
    if pid == 0:
        print(here(), flush=True)
        os._exit(0)
    os.waitpid(pid, 0)
    os._exit(0)
os.waitpid(pid, 0)
""",
    "multiprocessing": """
import multiprocessing, sys
context = multiprocessing.get_context(sys.argv[1])
with context.Pool(1) as pool:
    print(pool.apply(here), flush=True)
""",
    "ProcessPoolExecutor": """
import concurrent.futures, multiprocessing, sys
context = multiprocessing.get_context(sys.argv[1])
with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
    print(pool.submit(here).result(), flush=True)
""",
    "subprocess": """
import subprocess, sys
subprocess.run([sys.executable, "show.py"], check=True)
""",
    "subprocess with a copy of the environment": """
import os, subprocess, sys
subprocess.run([sys.executable, "show.py"], check=True, env={**os.environ, "MORE": "1"})
""",
    "subprocess with preexec_fn": """
import os, subprocess, sys
subprocess.run([sys.executable, "show.py"], check=True, preexec_fn=lambda: None)
""",
    "subprocess in isolated mode": """
import subprocess, sys
subprocess.run([sys.executable, "-I", "show.py"], check=True)
""",
    "posix_spawn": """
import os, sys
os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "show.py"], os.environ), 0)
""",
    "shell": """
import os, shlex, sys
os.system(f"{shlex.quote(sys.executable)} show.py")
""",
    "asyncio": """
import asyncio, sys
async def start():
    await (await asyncio.create_subprocess_exec(sys.executable, "show.py")).wait()
asyncio.run(start())
""",
}

CASES = [
    (way, *how)
    for way in WAYS
    for how in ([("fork",), ("forkserver",), ("spawn",)] if way in ("multiprocessing", "ProcessPoolExecutor") else [()])
]


@pytest.fixture
def family(programs: "Programs") -> "Programs":
    """Return programs, including the one that children run."""
    programs.write("show.py", SHOW)
    return programs


def program(way: str) -> str:
    """Return a program that starts a child in this way, safe to be imported by a spawned one."""
    body = (WAYS[way] + "print(here())").replace("\n", "\n    ")
    return f"{HERE}\nif __name__ == '__main__':\n    {body}\n"


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_children_take_part(family: "Programs", case: tuple[str, ...]) -> None:
    family.write("app.py", program(case[0]))
    assert family.run("-W", "ignore", "app.py", *case[1:]) == (0, b"True\nTrue\n", b"")


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_children_do_not_take_part_if_told_so(family: "Programs", case: tuple[str, ...]) -> None:
    family.write("app.py", program(case[0]))
    shown = family.run("--no-children", "-W", "ignore", "app.py", *case[1:])
    assert shown == (0, b"False\nTrue\n", b"")


def test_a_child_that_is_started_without_the_variable_does_not_take_part(family: "Programs") -> None:
    text = "import os, subprocess, sys; subprocess.run([sys.executable, 'show.py'], env={'PATH': os.environ['PATH']})"
    assert family.run("-c", text) == (0, b"False\n", b"")


def test_a_child_that_is_switched_off_does_not_take_part(family: "Programs") -> None:
    text = (
        "import os, subprocess, sys; subprocess.run([sys.executable, 'show.py'], env={**os.environ, 'UNSNARL': 'off'})"
    )
    assert family.run("-c", text) == (0, b"False\n", b"")


def test_a_child_without_site_does_not_take_part(family: "Programs") -> None:
    text = "import subprocess, sys; subprocess.run([sys.executable, '-S', 'show.py'])"
    assert family.run("-c", text) == (0, b"False\n", b"")


def test_another_environment_does_not_take_part(family: "Programs") -> None:
    """That interpreter has unsnarl, too, but was not started with ``unsnarl run``."""
    import unsnarl

    other = family.directory / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", other], check=True, timeout=60)
    (site_packages,) = other.glob("lib/python*/site-packages")
    package = Path(unsnarl.__file__).parent
    (site_packages / "unsnarl").symlink_to(package)
    (site_packages / "_unsnarl_boot.py").symlink_to(package.parent / "_unsnarl_boot.py")
    (site_packages / "unsnarl.pth").write_text("import _unsnarl_boot\n")
    program = "import subprocess, sys; subprocess.run([sys.argv[1], 'show.py']); print('_unsnarl_boot' in sys.modules)"
    python = other / "bin" / "python"
    assert family.run("-c", program, python) == (0, b"False\nTrue\n", b"")
    booted = family.write("booted.py", "import sys; print('_unsnarl_boot' in sys.modules)")
    assert family.execute([python, booted]).stdout == b"True\n", "the other environment does not run _unsnarl_boot"


def test_the_same_environment_by_another_path_takes_part(family: "Programs") -> None:
    link = family.directory / "link"
    link.symlink_to(sys.prefix)
    if not (Path(sys.prefix) / "bin" / "python").exists():
        pytest.skip(f"no bin/python in {sys.prefix}")
    text = "import subprocess, sys; subprocess.run([sys.argv[1], 'show.py'])"
    assert family.run("-c", text, link / "bin" / "python") == (0, b"True\n", b"")


SUBINTERPRETER = """\
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
number = interpreters.create()
interpreters.run_string(number, "import sys; print('sub', len(sys.argv), flush=True)")
interpreters.destroy(number)
print("main")
"""


@pytest.mark.parametrize("option", ["--stats=all", "--no-children"])
def test_a_subinterpreter_is_left_alone(family: "Programs", option: str) -> None:
    """The sub-interpreter's site reads the hook file as well, in a process where the scheduler is already installed."""
    family.write("app.py", SUBINTERPRETER)
    stock = family.python("app.py")
    scheduled = family.run(option, "app.py")
    assert (scheduled.status, scheduled.stdout) == (stock.status, stock.stdout)
    assert stock.stdout.endswith(b"main\n")
    assert scheduled.complaint.count("unsnarl") == (option == "--stats=all")


WAITS_IN_A_SUBINTERPRETER = """\
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
SOURCE = '''
import threading
threading.Event().wait(0.001)
print(threading.Event.wait.__class__.__name__, flush=True)
try:
    from unsnarl.patching import patch
    patch()
except Exception as error:
    print(type(error).__name__, error, flush=True)
'''
number = interpreters.create()
interpreters.run_string(number, SOURCE)
interpreters.destroy(number)
import threading
print(threading.Event.wait.__class__.__name__, "_xxsubinterpreters" in __import__("sys").modules)
"""


def test_a_subinterpreter_keeps_the_standard_librarys_classes(family: "Programs") -> None:
    """Before CPython 3.12 the native classes could be had there, and a call that waited asked for the GIL it held."""
    family.write("app.py", WAITS_IN_A_SUBINTERPRETER)
    refused = (
        "UnsupportedInterpreter this is a sub-interpreter: unsnarl's primitives do not work there "
        "(hint: patch the main interpreter alone)"
    )
    status, printed, complaint = family.run("--patch", "app.py")
    assert (status, complaint) == (0, b"")
    waits = "method_descriptor"
    assert printed.decode().splitlines() == ["function", refused, f"{waits} {sys.version_info < (3, 13)}"]
