"""A packed program shows the same as without its pack: warnings, tracebacks, its own names, its end."""

import os
import shutil
import sys
import zipapp
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import UNSNARL

if TYPE_CHECKING:
    import subprocess

    from tests.integration.conftest import Rig

MODULES = {
    "warning": "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n",
    "broken": "def f():\n    1 / 0\nf()\n",
    "wanting": "import unsnarl_has_no_such_module\n",
    "outer": "import broken\n",
    "depth": "import inspect\nFILES = [one.filename for one in inspect.stack()]\n",
    "good": "VALUE = 1\n",
}
TEXTS = {
    "a warning about the importing module": "import warning",
    "a failing body": "import broken",
    "a failing body of an imported module": "import outer",
    "an import in a body": "import wanting",
    "an exception": "def f():\n    1 / 0\nf()",
    "an exception by another": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
    "an exception that cannot be written to": (
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass E(Exception):\n    x: int\nraise E(1)"
    ),
    "an exception that hides its traceback": ("class E(SystemExit):\n    __traceback__ = property()\nraise E(4)"),
    "a group": "raise ExceptionGroup('all', [ValueError(1)])",
    "Ctrl-C": "raise KeyboardInterrupt",
    "a message": "sys.exit('bad')",
    "a status": "sys.exit(3)",
    "the main module": "print(vars(__loader__), type(__loader__), __file__, __doc__, sorted(globals()))",
    "the source of the main module": "print(__loader__.get_source('__main__'))",
    "a warning with a stack level beyond the program": "import warnings\nwarnings.warn('old', DeprecationWarning, 3)",
    "a shown warning beyond the program": "import warnings\ndef f(): warnings.warn('odd', stacklevel=4)\nf()",
    "the modules": "print(sorted(set(sys.modules) - {'good'}), 'gc' in sys.modules); import gc; print(gc.isenabled())",
    "a loader that has loaded": "import good; print(vars(good.__loader__))",
    "a loader that is copied": "import good, pickle; print(pickle.loads(pickle.dumps(good.__loader__)).path)",
}


@pytest.fixture
def app(rig: "Rig") -> tuple[str, str]:
    """A script, and its launcher, with all modules in its pack."""
    here = rig.directory / "bin"
    for name, text in MODULES.items():
        (here / f"{name}.py").write_text(text)
    imports = "".join(f"try:\n    import {name}\nexcept Exception:\n    pass\n" for name in MODULES)
    script = rig.script("app", imports + "import pickle, importlib.util\n")
    made = rig.plain(UNSNARL, "pack", script, "-o", str(rig.directory / "app.pack"))
    assert made.returncode == 0, made.stderr
    rig.script("app", "import sys\nexec(compile(sys.argv.pop(), 'given', 'exec'))\n")
    return script, str(rig.directory / "app")


def both(rig: "Rig", app: tuple[str, str], *words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    """Check that both have the same status, stdout and stderr."""
    plain, packed = (rig.plain(program, *words, **options) for program in app)
    assert (packed.returncode, packed.stdout) == (plain.returncode, plain.stdout)
    assert packed.stderr.decode() == plain.stderr.decode()
    return packed


@pytest.mark.parametrize("what", TEXTS)
def test_a_packed_program_shows_the_same(rig: "Rig", app: tuple[str, str], what: str) -> None:
    both(rig, app, TEXTS[what])


def test_only_the_launcher_and_the_import_system_are_on_the_stack(rig: "Rig", app: tuple[str, str]) -> None:
    plain, packed = (
        rig.plain(program, "import depth; print(*depth.FILES, sep='\\n')").stdout.splitlines() for program in app
    )
    assert [one for one in packed if b"importlib" not in one] == [one for one in plain if b"importlib" not in one]
    assert set(packed) == set(plain)
    assert packed[-1] == b"<frozen importlib._bootstrap_external>"
    shown = rig.plain(app[1], "import depth\nprint(type(depth.__loader__).__name__)").stdout
    assert shown == b"PackLoader\n"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="a map keeps a descriptor of its file before 3.13")
def test_a_pack_takes_no_file_descriptor(rig: "Rig", app: tuple[str, str]) -> None:
    both(rig, app, "import os; print(os.dup(0), os.dup(0), sorted(os.listdir('/proc/self/fd')))")


def test_a_syntax_error_of_the_script_is_shown_the_same(rig: "Rig", app: tuple[str, str]) -> None:
    rig.script("app", "x = 1 +\n")
    assert b"SyntaxError" in both(rig, app).stderr


def test_where_code_is_kept_is_the_same_elsewhere(rig: "Rig", app: tuple[str, str]) -> None:
    env = rig.env | {"PYTHONPYCACHEPREFIX": str(rig.directory / "cache")}
    assert (
        b"/cache/"
        in both(rig, app, "import good; print(vars(good).get('__cached__'), good.__spec__.cached)", env=env).stdout
    )


def test_a_link_to_a_script_has_the_script_s_directory_on_its_path(rig: "Rig") -> None:
    here = rig.directory / "bin"
    (here / "beside.py").write_text("VALUE = 1\n")
    script = rig.script("app", "import beside, sys\nprint(beside.VALUE, sys.path[0], sys.argv, __file__)\n")
    links = rig.directory / "links"
    links.mkdir()
    (links / "link").symlink_to(script)
    made = rig.plain(UNSNARL, "pack", str(links / "link"), "-o", str(rig.directory / "app.pack"))
    assert made.returncode == 0, made.stderr
    shown = both(rig, (str(links / "link"), str(rig.directory / "app"))).stdout
    assert shown == f"1 {here} ['{links}/link'] {links}/link\n".encode()


def test_the_packages_of_a_module_see_the_same(rig: "Rig") -> None:
    work = rig.directory / "work"
    (work / "family").mkdir()
    (work / "family" / "__init__.py").write_text("import sys\nprint(sys.argv, sys.path[0])\n")
    (work / "family" / "tool.py").write_text("import sys\nprint(sys.argv, __file__)\n1 / (len(sys.argv) - 2)\n")
    made = rig.plain(UNSNARL, "pack", "-m", "family.tool", "-o", str(rig.directory / "tool.pack"), "--with", "")
    assert made.returncode == 0, made.stderr
    launcher = str(rig.directory / "tool")
    for words in ([], ["x"]):
        plain = rig.plain(sys.executable, "-m", "family.tool", *words)
        packed = rig.plain(launcher, *words)
        assert (packed.returncode, packed.stdout, packed.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_a_module_starts_in_a_directory_that_is_gone(rig: "Rig") -> None:
    made = rig.plain(UNSNARL, "pack", "-m", "json.tool", "-o", str(rig.directory / "tool.pack"), "--with", "--help")
    assert made.returncode == 0, made.stderr
    gone = rig.directory / "gone"

    def leave() -> None:
        gone.mkdir()
        os.chdir(gone)
        gone.rmdir()

    words = {"input": b"1", "preexec_fn": leave}
    plain = rig.plain(sys.executable, "-m", "json.tool", **words)
    packed = rig.plain(str(rig.directory / "tool"), **words)
    assert (packed.returncode, packed.stdout, packed.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert packed.stdout == b"1\n"


@pytest.mark.parametrize("is_module", [True, False])
def test_a_launcher_outlives_unsnarl(rig: "Rig", is_module: bool) -> None:
    (rig.directory / "work" / "tool.py").write_text("import sys\nprint(sys.argv[1:], sys.flags.no_user_site)\n")
    script = rig.script("app", "").replace("/app", "/odd")
    Path(script).write_text(f"#!{sys.executable} -s\nimport sys\nprint(sys.argv[1:], sys.flags.no_user_site)\n")
    target = ["-m", "tool"] if is_module else [script]
    made = rig.plain(UNSNARL, "pack", *target, "-o", str(rig.directory / "made.pack"))
    assert made.returncode == 0, made.stderr
    launcher = rig.directory / "made"
    # As if unsnarl had been removed: the launcher's directory does not exist, or lacks a file.
    text = launcher.read_text()
    here = next(line for line in text.splitlines() if "__path__ = [" in line).partition("'")[2].partition("'")[0]
    half = rig.directory / "half"
    half.mkdir()
    shutil.copy(Path(here, "start.py"), half)
    for place in ("/unsnarl/has/been/removed", str(half)):
        launcher.write_text(text.replace(here, place))
        run = rig.plain(str(launcher), "a b")
        assert (run.returncode, run.stdout) == (0, f"['a b'] {0 if is_module else 1}\n".encode())
        assert run.stderr.count(b"warning: the pack is not used") == 1
        assert run.stderr.count(b"\n") == 1


def test_a_warning_that_cannot_be_written_does_no_harm(rig: "Rig", app: tuple[str, str]) -> None:
    (rig.directory / "app.pack").unlink()
    with open("/dev/full", "wb") as full:
        run = rig.plain(app[1], "print(1)", stdout=-1, stderr=full)
    assert (run.returncode, run.stdout) == (0, b"1\n")


@pytest.mark.parametrize(
    "line", ["#!{odd}/bin/python", "#!/bin/sh\n'''exec' '{odd}/bin/python' -u -s \"$0\" \"$@\"\n' '''"]
)
def test_an_interpreter_that_the_kernel_cannot_name_starts_by_the_shell(rig: "Rig", line: str) -> None:
    odd = rig.directory / ("with space" if "exec" in line else "l" * 120)
    odd.mkdir()
    (odd / "bin").symlink_to(Path(sys.executable).parent)
    script = rig.script("app", "")
    text = "import sys\nprint(sys.argv[1:], sys.flags.no_user_site, sys.flags.optimize, __doc__)\n"
    Path(script).write_text(line.format(odd=odd) + "\n" + text)
    made = rig.plain(UNSNARL, "pack", script, "-o", str(rig.directory / "app.pack"))
    assert made.returncode == 0, made.stderr
    launcher = rig.directory / "app"
    assert launcher.read_text().startswith("#!/bin/sh\n'''exec' ")
    assert both(rig, (script, str(launcher)), "a b", "'").stdout.startswith(b"['a b', \"'\"] ")


def test_damage_is_mentioned_once_and_so_is_a_source_that_was_changed(rig: "Rig", app: tuple[str, str]) -> None:
    from unsnarl.pack import container

    here, pack = rig.directory / "bin", rig.directory / "app.pack"
    for name in ("good", "depth"):
        (here / f"{name}.py").write_text("VALUE = 222\nX = 1\n")
    run = rig.plain(app[1], "import good, depth; print(good.VALUE, depth.VALUE)")
    assert run.stdout == b"222 222\n"
    assert run.stderr.count(b"\n") == 1
    assert b"good.py is imported from its file, and not from the pack: it has changed" in run.stderr
    assert b"the pack is not used" not in run.stderr
    data = pack.read_bytes()
    _, area, *_ = container.read(memoryview(data))
    pack.unlink()
    pack.write_bytes(data[: len(data) - len(area)] + bytes(len(area)))
    run = rig.plain(app[1], "import pickle, inspect; print(inspect.__file__)")
    assert run.returncode == 0
    assert run.stderr.count(b"\n") == 1
    assert b" is damaged" in run.stderr


@pytest.mark.parametrize("moved", ["cut", "rounded", "set"])
def test_times_as_a_container_image_keeps_them_leave_the_pack_in_use(
    rig: "Rig", app: tuple[str, str], moved: str
) -> None:
    good, second = rig.directory / "bin" / "good.py", 1_000_000_000
    at = good.stat().st_mtime_ns
    kept = {"cut": at // second, "rounded": (at + second // 2) // second, "set": 1}[moved] * second
    os.utime(good, ns=(kept, kept))
    run = rig.plain(app[1], "import good; print(type(good.__loader__).__name__)")
    assert (run.stdout, run.stderr) == (b"PackLoader\n", b"")


def test_an_edit_of_the_same_length_counts_whatever_time_it_has(rig: "Rig", app: tuple[str, str]) -> None:
    good = rig.directory / "bin" / "good.py"
    text = good.read_text()
    good.write_text("#" * len(text))
    run = rig.plain(app[1], "import good; print(type(good.__loader__).__name__)")
    assert run.stdout == b"SourceFileLoader\n"
    assert b"it has changed since it was packed" in run.stderr


ARCHIVED = """
import sys
sys.path.insert(1, {unpacked!r})
import inner, outer, json
print(inner.VALUE, outer.VALUE, __file__, __name__, sys.argv, sys.path[0], __spec__.name)
sys.stderr.write(f"{{type(outer.__loader__).__name__}} {{type(json.__loader__).__name__}}\\n")
sys.exit(len(sys.argv))
"""


def test_an_archive_that_unpacks_itself_takes_from_the_pack_what_is_unpacked(rig: "Rig") -> None:
    """As shiv and pex do: the archive's `__main__` puts a directory on the path."""
    source, unpacked, archive = (rig.directory / name for name in ("source", "unpacked", "app.pyz"))
    source.mkdir()
    unpacked.mkdir()
    (source / "inner.py").write_text("VALUE = 'inner'\n")
    (unpacked / "outer.py").write_text("VALUE = 'outer'\n")
    (source / "__main__.py").write_text(ARCHIVED.format(unpacked=str(unpacked)))
    zipapp.create_archive(source, archive, sys.executable)
    words = (UNSNARL, "pack", str(archive), "-o", str(rig.directory / "made.pack"))
    assert b"leave --lazy out" in rig.plain(*words, "--lazy").stderr
    made = rig.plain(*words)
    assert made.returncode == 0, made.stderr
    plain, packed = rig.plain(str(archive), "a"), rig.plain(str(rig.directory / "made"), "a")
    assert (packed.returncode, packed.stdout) == (plain.returncode, plain.stdout) == (2, plain.stdout)
    assert (plain.stderr, packed.stderr) == (b"SourceFileLoader SourceFileLoader\n", b"PackLoader PackLoader\n")
