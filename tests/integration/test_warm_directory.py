"""The caller's directory decides what a relative path means: no other's files are read, and no other's code is run."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

WHO = "import sys, mod\nprint(mod.VALUE, 'warm' if '_unsnarl_warm' in sys.modules else 'plain')\n"
PACKAGE_MAIN = "import sys\nfrom tool import WHERE\nprint(WHERE, '_unsnarl_warm' in sys.modules)\n"


def checkout(rig: "Rig", name: str, **modules: str) -> Path:
    """Make a directory with these modules in it."""
    directory = rig.directory / name
    directory.mkdir()
    for module, text in modules.items():
        (directory / f"{module}.py").write_text(text)
    return directory


def installed(rig: "Rig") -> dict[str, str]:
    """Put a package ``tool``, which imports ``part``, on the path; returns the environment that names it."""
    site = checkout(rig, "site", part="WHERE = 'installed'\n")
    (site / "tool").mkdir()
    (site / "tool" / "__init__.py").write_text("from part import WHERE\n")
    (site / "tool" / "__main__.py").write_text(PACKAGE_MAIN)
    return rig.env | {"PYTHONPATH": str(site)}


@pytest.mark.parametrize("path", [".", "/nowhere:", "/nowhere:lib"])
def test_a_relative_search_path_is_the_callers(rig: "Rig", path: str) -> None:
    script = rig.script("who", WHO)
    env = rig.env | {"PYTHONPATH": path}
    places = [checkout(rig, name, mod=f"VALUE = {name!r}\n") for name in ("one", "two")]
    for here in places:
        (here / "lib").symlink_to(".")
        rig.start(script, cwd=here, env=env)
        assert rig.served(script, cwd=here, env=env).stdout == f"{here.name} warm\n".encode(), rig.log()
    # Facts of one directory do not hold for the other: its files are watched as well.
    (places[1] / "mod.py").write_text("VALUE = 'changed'\n")
    assert rig.warm(script, cwd=places[1], env=env).stdout.startswith(b"changed ")


def test_each_search_path_is_learned_by_itself(rig: "Rig") -> None:
    script = rig.script("who", WHO)
    for name in ("one", "two"):
        here = checkout(rig, name, mod=f"VALUE = {name!r}\n")
        env = rig.env | {"PYTHONPATH": str(here)}
        rig.start(script, env=env)
        assert rig.served(script, env=env).stdout == f"{name} warm\n".encode()
    (here / "mod.py").write_text("VALUE = 'changed'\n")
    assert rig.warm(script, env=env).stdout.startswith(b"changed ")


def test_an_interpreter_named_by_a_relative_path_is_the_callers(rig: "Rig") -> None:
    outcomes = []
    for name in ("one", "two"):
        here = checkout(rig, name)
        rig.plain(sys.executable, "-m", "venv", "--without-pip", str(here / "venv"))
        (site,) = (here / "venv" / "lib").glob("*/site-packages")
        (site / "tool.py").write_text(f"import sys\nprint({name!r}, '_unsnarl_warm' in sys.modules)\n")
        words = ["venv/bin/python", "-m", "tool"]
        rig.start(*words, cwd=here)
        outcomes.append(rig.served(*words, cwd=here).stdout)
    assert outcomes == [b"one True\n", b"two True\n"]


def test_a_checkout_hides_the_installed_package(rig: "Rig") -> None:
    env = installed(rig)
    words = [sys.executable, "-m", "tool"]
    rig.start(*words, env=env)
    assert rig.served(*words, env=env).stdout == b"installed True\n", rig.log()
    here = checkout(rig, "checkout")
    (here / "tool").mkdir()
    (here / "tool" / "__main__.py").write_text(PACKAGE_MAIN)
    # A directory that is no package hides none.
    assert rig.served(*words, env=env, cwd=here).stdout == b"installed True\n"
    (here / "tool" / "__init__.py").write_text("WHERE = 'checkout'\n")
    assert rig.warm(*words, env=env, cwd=here).stdout == b"checkout False\n"
    assert "tool" in rig.log()


def test_the_callers_directory_hides_what_the_package_imports(rig: "Rig") -> None:
    env = installed(rig)
    words = [sys.executable, "-m", "tool"]
    rig.start(*words, env=env)
    here = checkout(rig, "elsewhere", part="WHERE = 'hidden'\n", sys="", os="")
    assert rig.warm(*words, env=env, cwd=here).stdout == b"hidden False\n"
    (here / "part.py").unlink()
    # Modules that the interpreter has built in, or loads first, cannot be hidden.
    assert rig.served(*words, env=env, cwd=here).stdout == b"installed True\n", rig.log()


LOOKS = {
    "open": "try: VALUE = open('settings').read()\nexcept OSError: VALUE = 'none'\n",
    "open by name of bytes": "try: VALUE = open(b'settings').read()\nexcept OSError: VALUE = 'none'\n",
    "os.open": (
        "import os, pathlib\n"
        "try: fd = os.open(pathlib.Path('settings'), os.O_RDONLY)\nexcept OSError: VALUE = 'none'\n"
        "else:\n    VALUE = os.read(fd, 9).decode(); os.close(fd)\n"
    ),
    "below": "try: VALUE = open('conf/settings').read()\nexcept OSError: VALUE = 'none'\n",
    "list": "import os\nVALUE = 'none' if 'settings' not in os.listdir() else open('settings').read()\n",
    "scan": "import glob\nVALUE = 'none' if not glob.glob('*tings') else open('settings').read()\n",
    "exists": "import os.path\nVALUE = 'there' if os.path.exists('settings') else 'none'\n",
    "path": "import pathlib\nVALUE = 'there' if pathlib.Path('settings').is_file() else 'none'\n",
    "access": "import os\nVALUE = 'there' if os.access('settings', os.R_OK) else 'none'\n",
}


@pytest.mark.parametrize("how", LOOKS)
def test_what_imports_find_beside_the_caller_is_the_callers(rig: "Rig", how: str) -> None:
    (rig.directory / "bin" / "mod.py").write_text(LOOKS[how])
    script = rig.script("who", WHO)
    rig.start(script)
    assert rig.served(script).stdout == b"none warm\n"
    here = checkout(rig, "here")
    (here / "conf").mkdir()
    for place in (here, here / "conf"):
        (place / "settings").write_text("mine")
    expected = rig.plain(script, cwd=here).stdout.split()[0]
    assert expected in (b"mine", b"there")
    rig.start(script, cwd=here)
    assert rig.served(script, cwd=here).stdout == expected + b" warm\n"
    for place in (here, here / "conf"):
        (place / "settings").write_text("other")
    assert rig.warm(script, cwd=here).stdout.split()[0] == rig.plain(script, cwd=here).stdout.split()[0]


def test_watching_the_file_system_changes_nothing(rig: "Rig") -> None:
    (rig.directory / "bin" / "mod.py").write_text(
        "import os, shutil\nclass Access:\n    look = os.stat\n"
        "assert {os.stat, os.access} <= os.supports_dir_fd and os.stat in os.supports_fd\n"
        "assert os.path.isdir('/') and Access().look('/')\nVALUE = shutil.rmtree.avoids_symlink_attacks\n"
    )
    script = rig.script("who", WHO)
    rig.start(script)
    assert rig.served(script).stdout == b"True warm\n"
    assert b"directory" not in rig.verb("why", "who").stdout


def test_what_is_learned_from_runs_is_learned_where_they_were(rig: "Rig") -> None:
    here = checkout(rig, "here", mod="VALUE = 1\n", late="print('late')\n")
    script = rig.script("loads", "import sys, mod\n'late' in sys.modules or __import__('late')\nprint(mod.VALUE)\n")
    env = rig.env | {"PYTHONPATH": "."}
    rig.start(script, cwd=here, env=env)
    assert rig.served(script, cwd=here, env=env).stdout == b"late\n1\n"
    # The successor tries the module in its predecessor's directory, where it is found and prints.
    until(lambda: b"prints while it is imported" in rig.verb("why", "loads").stdout)


@pytest.mark.parametrize("words", ["./manage", "../bin/manage", "python manage"])
def test_a_script_may_be_called_by_a_relative_path(rig: "Rig", words: str) -> None:
    report = "print(__file__, sys.argv, sys.path[0], sys.orig_argv[1:], (lambda: 0).__code__.co_filename, mod.FIRST)\n"
    (rig.directory / "bin" / "mod.py").write_text("import sys\nFIRST = sys.argv[0]\n")
    rig.script("manage", f"import sys, mod\n{report}print('_unsnarl_warm' in sys.modules)\n")
    here = rig.directory / "bin"
    command = words.replace("python", sys.executable).split()
    rig.start(*command, cwd=here)
    plain, warm = rig.plain(*command, "a", cwd=here), rig.served(*command, "a", cwd=here)
    assert (plain.stdout.splitlines()[:-1], b"True") == (warm.stdout.splitlines()[:-1], warm.stdout.splitlines()[-1])
    # The same words in another directory are another script.
    other = checkout(rig, "other")
    (other / "manage").write_text(f"#!{sys.executable}\nprint('other')\n")
    (other / "manage").chmod(0o755)
    if words != "../bin/manage":
        assert rig.warm(*command, cwd=other).stdout == b"other\n"


def test_a_directory_that_is_removed_while_a_command_is_learned_is_no_verdict(rig: "Rig") -> None:
    place, reached = rig.directory / "place", rig.directory / "reached"
    place.mkdir()
    module = f"""
import os, time
if os.getcwd() == {str(place)!r}:
    open({str(reached)!r}).close()  # a named pipe: the other side is opened when the directory is removed
VALUE = os.path.exists('nothing') or os.getcwd() != 'x'
"""
    (rig.directory / "bin" / "mod.py").write_text(module)
    script = rig.script("who", WHO)
    os.mkfifo(reached)
    starting = subprocess.Popen([UNSNARL, "warm", "start", "--", script], env=rig.env, cwd=place)
    rig.processes.append(starting)
    with open(reached, "w"):  # returns once the import is there
        place.rmdir()
    starting.kill()
    starting.wait()
    until(lambda: not list(rig.house.glob("learn-*")))
    rig.start(script)
    assert rig.served(script).stdout == b"True warm\n"
