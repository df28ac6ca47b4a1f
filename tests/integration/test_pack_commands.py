"""A command behaves the same with its pack and without."""

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.conftest import without_notice
from tests.integration.test_warm_transparency import ENDINGS
from unsnarl.lab import presence
from unsnarl.pack import container

if TYPE_CHECKING:
    from pathlib import Path

    from tests.integration.conftest import Rig

SHARE = 0.4
"""Largest share of a plain run's file system calls that a packed run may make; this program imports little."""

SCRIPT = """
import sys, inspect, json, importlib.resources, importlib.metadata, mod, sub.part
print(mod.VALUE, mod.__file__, mod.__spec__.origin, mod.__spec__.cached, type(mod.__loader__).__mro__[-3].__name__)
print(sub.__path__, sub.__spec__.submodule_search_locations, inspect.getsource(mod.f), json.dumps([1]))
print(importlib.resources.files("sub").joinpath("data.txt").read_text(), importlib.metadata.version("rich"))
print(sys.argv, sys.path[0], __file__, __name__)
if "fail" in sys.argv:
    mod.f()
"""


@pytest.fixture
def packed(rig: "Rig") -> "tuple[str, str, Path]":
    """A script, its launcher, and its pack."""
    here = rig.directory / "bin"
    (here / "sub").mkdir()
    (here / "sub" / "__init__.py").write_text("")
    (here / "sub" / "part.py").write_text("PART = 1\n")
    (here / "sub" / "data.txt").write_text("data")
    (here / "mod.py").write_text("VALUE = 1\ndef f():\n    return 1 / 0\n")
    script = rig.script("app", SCRIPT)
    pack = rig.directory / "app.pack"
    made = rig.plain(os.environ.get("UNSNARL_COMMAND", unsnarl()), "pack", script, "-o", str(pack), "--with", "x")
    assert made.returncode == 0, made.stderr
    return script, str(rig.directory / "app"), pack


def unsnarl() -> str:
    """Return the command."""
    from tests.integration.conftest import UNSNARL

    return UNSNARL


def same(rig: "Rig", script: str, launcher: str, *args: str) -> "subprocess.CompletedProcess[bytes]":
    """Run both and compare; returns the packed outcome."""
    plain, packed = rig.plain(script, *args), rig.plain(launcher, *args)
    assert (packed.returncode, packed.stdout) == (plain.returncode, plain.stdout)
    complaints = [line for line in packed.stderr.splitlines() if not line.startswith(b"warning: ")]
    assert complaints == plain.stderr.splitlines()
    return packed


@pytest.mark.parametrize("name", ["plain.py", "./plain.py"])
def test_file_without_a_first_line_is_packed_as_python_would_run_it(rig: "Rig", name: str) -> None:
    here = rig.directory / "bin"
    (here / "helper.py").write_text("VALUE = 7\n")
    (here / "plain.py").write_text("import helper, sys\nprint(helper.VALUE, sys.argv[1:], __name__)\n")
    made = rig.plain(unsnarl(), "pack", name, "-o", "plain.pack", cwd=here)
    assert made.returncode == 0, made.stderr
    assert rig.plain(str(here / "plain"), "x").stdout == b"7 ['x'] __main__\n"


def test_a_packed_command_is_the_same(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, launcher, _ = packed
    assert same(rig, script, launcher, "x", "y").stderr == b""
    failed = same(rig, script, launcher, "fail")
    assert b"ZeroDivisionError" in failed.stderr
    assert b"return 1 / 0" in failed.stderr


def test_it_asks_the_file_system_less(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    if (reason := presence.reason_against_strace()) is not None:
        pytest.skip(reason)
    script, launcher, _ = packed
    bare = rig.script("bare", "")
    counts = []
    for program in (bare, script, launcher):
        out = rig.directory / "trace"
        calls = "trace=openat,getdents64,?stat,?lstat,?newfstatat,?statx"
        rig.plain("strace", "-f", "-e", calls, "-o", str(out), program)
        counts.append(out.read_text().count("("))
    # Calls of an interpreter that runs nothing are subtracted; the rest are the program's and unsnarl's.
    of_bare, of_plain, of_packed = counts
    assert (of_packed - of_bare) / (of_plain - of_bare) < SHARE, counts


def test_modules_that_put_another_in_their_place_or_fail_are_packed(rig: "Rig") -> None:
    here = rig.directory / "bin"
    (here / "swapped.py").write_text("import json, sys\nsys.modules[__name__] = json\n")
    (here / "failing.py").write_text("import unsnarl_has_no_such_module\n")
    text = (
        "import swapped\ntry:\n    import failing\nexcept ImportError as error:\n    print(error, swapped.__name__)\n"
    )
    script, pack = rig.script("app", text), rig.directory / "app.pack"
    made = rig.plain(unsnarl(), "pack", script, "-o", str(pack))
    assert made.returncode == 0, made.stderr
    entries = container.read(memoryview(pack.read_bytes()))[0]
    assert [entries[name][container.PATH] for name in ("swapped", "failing")] == [
        str(here / "swapped.py"),
        str(here / "failing.py"),
    ]
    assert (
        same(rig, script, str(rig.directory / "app")).stdout == b"No module named 'unsnarl_has_no_such_module' json\n"
    )


# Puts a finder before PathFinder, as tracers and import hooks do.
HOOK = """
import sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "refused":
            raise ImportError("not this one")
        if name == "swapped":
            from importlib.util import spec_from_file_location
            return spec_from_file_location(name, {other!r})
sys.meta_path.insert(0, Finder)
"""


def customized(rig: "Rig", text: str) -> dict[str, str]:
    """Return an environment in which the interpreter runs this code at its start."""
    site = rig.directory / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(text)
    return rig.env | {"PYTHONPATH": os.pathsep.join([str(site), rig.env.get("PYTHONPATH", "")]).rstrip(os.pathsep)}


def test_what_a_finder_before_the_path_answers_or_refuses_is_not_packed(rig: "Rig") -> None:
    here = rig.directory / "bin"
    for name in ("swapped", "refused", "ordinary"):
        (here / f"{name}.py").write_text(f"import json, sys\njson.by = {name!r}\nsys.modules[__name__] = json\n")
    other = rig.directory / "swapped.py"
    other.write_text("import json, sys\njson.by = 'the hook'\nsys.modules[__name__] = json\n")
    env = customized(rig, HOOK.format(other=str(other)))
    text = "import ordinary, swapped\nprint(swapped.by)\ntry:\n    import refused\nexcept ImportError as error:\n"
    script, pack = rig.script("app", f"{text}    print(error)\n"), rig.directory / "app.pack"
    made = rig.plain(unsnarl(), "pack", script, "-o", str(pack), env=env)
    assert made.returncode == 0, made.stderr
    entries = container.read(memoryview(pack.read_bytes()))[0]
    assert {"swapped", "refused", "ordinary"} & entries.keys() == {"ordinary"}
    for program in (script, str(rig.directory / "app")):
        assert rig.plain(program, env=env).stdout == b"the hook\nnot this one\n"


# Added to `sys.meta_path` only after the pack was made; has one of its modules.
LATER = """
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "mod":
            return spec_from_file_location(name, {other!r})
class Loader(SourceFileLoader):
    def exec_module(self, module):
        super().exec_module(module)
        module.VALUE = "the hook's"
LOADERS = (ExtensionFileLoader, EXTENSION_SUFFIXES), (Loader, [".py"])
"""
WHERE = {
    "first": "sys.meta_path.insert(0, Finder)",
    "before the path's": "sys.meta_path.insert(sys.meta_path.index(PathFinder), Finder)",
    "by a hook": "sys.path_hooks.insert(0, FileFinder.path_hook(*LOADERS))",
}


@pytest.mark.parametrize("where", WHERE)
def test_a_finder_that_came_after_the_pack_is_asked_before_it(
    rig: "Rig", packed: "tuple[str, str, Path]", where: str
) -> None:
    script, launcher, _ = packed
    other = rig.directory / "mod.py"
    other.write_text("VALUE = 333\ndef f():\n    return 1 / 0\n")
    env = customized(rig, (LATER + WHERE[where]).format(other=str(other)))
    plain, same = rig.plain(script, env=env), rig.plain(launcher, env=env)
    assert (same.returncode, same.stdout, same.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert plain.stdout.startswith((b"333 ", b"the hook's "))


def test_an_entry_of_the_path_that_is_no_text_does_no_harm(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, launcher, _ = packed
    env = customized(rig, "import pathlib, sys\nsys.path.insert(0, pathlib.Path('/nowhere'))\n")
    plain, same = rig.plain(script, env=env), rig.plain(launcher, env=env)
    assert (same.returncode, same.stdout, same.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert same.stdout.startswith(b"1 ")


def test_directories_are_looked_at_only_if_asked_for(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, launcher, pack = packed
    assert container.read(memoryview(pack.read_bytes()))[2] == {}
    words = ["pack", script, "-o", str(pack), "--check", "directories"]
    made = rig.plain(unsnarl(), *words)
    assert made.returncode == 0, made.stderr
    assert os.path.dirname(json.__file__) in container.read(memoryview(pack.read_bytes()))[2]
    assert same(rig, script, launcher, "x", "y").stderr == b""


def test_a_newer_source_wins(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, launcher, _ = packed
    (rig.directory / "bin" / "mod.py").write_text("VALUE = 222\ndef f():\n    return 1 / 0\n")
    assert same(rig, script, launcher).stdout.startswith(b"222 ")


def test_a_new_module_that_hides_another_wins(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, launcher, _ = packed
    (rig.directory / "bin" / "json.py").write_text("def dumps(x): return 'hidden'\n")
    assert b"hidden" in same(rig, script, launcher).stdout


@pytest.mark.parametrize("at", [0, 9, 40, -10])
def test_a_damaged_pack_is_left_aside_with_a_warning(rig: "Rig", packed: "tuple[str, str, Path]", at: int) -> None:
    script, launcher, pack = packed
    data = bytearray(pack.read_bytes())
    data[at] ^= 0xFF
    pack.unlink()
    pack.write_bytes(data)
    damaged = same(rig, script, launcher)
    notices = damaged.stderr.count(b"the pack is not used") + damaged.stderr.count(b"not from the pack")
    assert damaged.stderr.count(b"\n") == notices <= 1


def test_a_missing_pack_is_only_a_warning(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, launcher, pack = packed
    pack.unlink()
    assert same(rig, script, launcher).stderr.count(b"warning:") == 1


def test_switched_off_the_pack_is_left_alone(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, launcher, pack = packed
    pack.unlink()
    pack.write_bytes(b"not even looked at")
    assert rig.plain(launcher).stderr, "a pack like this is complained of"
    env = rig.env | {"UNSNARL": "off"}
    plain, off = rig.plain(script, env=env), rig.plain(launcher, env=env)
    assert (off.returncode, off.stdout, off.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_a_run_with_a_pack_is_the_same(rig: "Rig", packed: "tuple[str, str, Path]") -> None:
    script, _, pack = packed
    plain = rig.plain(sys.executable, script, "x")
    run = rig.plain(unsnarl(), "run", "--pack", str(pack), script, "x")
    assert (run.returncode, run.stdout, without_notice(run.stderr)) == (plain.returncode, plain.stdout, plain.stderr)
    code = "import mod, sys; print(type(mod.__loader__).__name__, 'mmap' in sys.modules)"
    # Found through the path under which it was packed; the empty entry of -c would find the file itself first.
    env = rig.env | {"PYTHONPATH": str(rig.directory / "bin")}
    shown = rig.plain(unsnarl(), "run", "--pack", str(pack), "-P", "-c", code, env=env)
    assert shown.stdout == b"PackLoader False\n"
    missing = rig.plain(unsnarl(), "run", "--pack", f"{pack}x", script, "x")
    assert missing.stdout == plain.stdout
    assert without_notice(missing.stderr).startswith(b"warning: the pack is not used")


def test_a_packed_module_is_the_same(rig: "Rig") -> None:
    launcher = rig.directory / "tool"
    words = ["pack", "-m", "json.tool", "-o", f"{launcher}.pack", "--with", "--help"]
    made = rig.plain(unsnarl(), *words)
    assert made.returncode == 0, made.stderr
    # By the name that the launcher uses: since 3.14 argparse shows it.
    interpreter = launcher.read_text().partition("\n")[0].removeprefix("#!")
    for arguments in ([], ["--no-such-option"], ["no-such-file"]):
        plain = rig.plain(interpreter, "-m", "json.tool", *arguments, input=b'{"b": 1}')
        packed = rig.plain(str(launcher), *arguments, input=b'{"b": 1}')
        assert (packed.returncode, packed.stdout, packed.stderr) == (plain.returncode, plain.stdout, plain.stderr)


# Runs its argument; an object is in a reference cycle at the end, as the objects of modules are.
ENDS = """
import sys
circle = []
circle.append((circle, globals()))
exec(sys.argv.pop())
"""


def test_a_packed_command_ends_the_same(rig: "Rig") -> None:
    launcher = ended(rig)
    script = str(rig.directory / "bin" / "ends")
    for text in ENDINGS.values():
        same(rig, script, launcher, text)


def test_nothing_is_collected_at_the_end_if_the_program_cannot_observe_it(rig: "Rig") -> None:
    launcher = ended(rig)
    # Registered before the exit function of the pack, so called after it.
    env = customized(rig, "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count() > 1000))\n")
    assert rig.plain(launcher, "", env=env).stdout == b"True\n"
    assert rig.plain(launcher, ENDINGS["finaliser"], env=env).stdout == b"False\ngone\n"


def ended(rig: "Rig") -> str:
    """Pack a program that can end in every way; returns its launcher."""
    script = rig.script("ends", ENDS)
    made = rig.plain(unsnarl(), "pack", script, "-o", str(rig.directory / "ends.pack"), "--with", "''")
    assert made.returncode == 0, made.stderr
    return str(rig.directory / "ends")
