"""Commands that change how modules are imported, or measure them, as a test runner: same results as plainly.

Invariant: what such a run has loaded is nowhere loaded ahead, neither in its own command nor by what came before it.
"""

from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

RUNNER = "import sys\nfrom pytest import main\nsys.exit(main())\n"
HELPER = "def compare(one, other):\n    assert one == other\n"
TEST = "from helper import compare\ndef test_it():\n    compare('left', 'right')\n"
MEASURED = """
import importlib, sys
if "--measure" in sys.argv:
    def look(frame, event, argument):
        if event == "call" and "part" in frame.f_code.co_filename:
            print(event)
    sys.setprofile(look)
importlib.import_module("part")
print("done")
"""
HOOKED = """
import importlib, importlib.machinery, sys
class Shouting(importlib.machinery.SourceFileLoader):
    def get_data(self, path):
        return super().get_data(path).upper() if path.endswith("part.py") else super().get_data(path)
    def path_stats(self, path):
        raise OSError
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "part":
            file = __file__.rpartition("/")[0] + "/part.py"
            return importlib.util.spec_from_file_location(name, file, loader=Shouting(name, file))
if "--hook" in sys.argv:
    finder = Finder()
    sys.meta_path.insert(0, finder)
import importlib.util
print(importlib.import_module("part").__doc__)
if "--hook" in sys.argv:
    sys.meta_path.remove(finder)
"""


def learned_from_runs(rig: "Rig", script: str, *words: str) -> None:
    """Run a command warm, and wait until the modules it has loaded are learned, if there are any."""
    rig.start(script)
    rig.served(script, *words)
    until(lambda: "ends, replaced" in rig.log() or "ends, learned again" in rig.log())
    rig.start(script)


def test_a_runner_of_tests_rewrites_what_it_loads(rig: "Rig") -> None:
    (rig.directory / "bin" / "helper.py").write_text(HELPER)
    (rig.directory / "work" / "test_it.py").write_text(TEST)
    rig.env |= {"PYTHONPATH": str(rig.directory / "bin"), "PYTHONDONTWRITEBYTECODE": "1"}
    script = rig.script("tester", RUNNER)
    # The first run rewrites nothing, and the modules that it loads are ordinary.
    words = ("-p", "helper", "-p", "no:cacheprovider")
    learned_from_runs(rig, script, "--assert=plain", *words)
    # The modules of the first run are imported ahead by now, but not for long.
    told = b"AssertionError: assert 'left' == 'right'"
    expected = rig.plain(script, *words).stdout.count(told)
    until(lambda: rig.served(script, *words).stdout.count(told) == expected)
    until(lambda: b"nothing is learned from its runs" in rig.verb("why", script).stdout)
    warm = rig.served(script, *words).stdout
    assert b"already imported" not in warm


@pytest.mark.parametrize("words", [("-q",), ("-q", "--cov=pkg", "--cov-report=term-missing")])
def test_plugins_of_a_runner_find_nothing_imported(rig: "Rig", words: tuple[str, ...]) -> None:
    pytest.importorskip("anyio")
    if "--cov=pkg" in words:
        pytest.importorskip("pytest_cov", reason="pytest-cov is not installed beside the tests")
    (rig.directory / "bin" / "pkg.py").write_text("VALUE = 1\nOTHER = 2\n")
    (rig.directory / "work" / "test_it.py").write_text("import pkg\ndef test_it():\n    assert pkg.VALUE == 1\n")
    rig.env |= {"PYTHONPATH": str(rig.directory / "bin"), "PYTHONDONTWRITEBYTECODE": "1"}
    script = rig.script("tester", RUNNER)
    words = (*words, "-p", "no:cacheprovider")
    learned_from_runs(rig, script, *words)
    plain, warm = rig.plain(script, *words), rig.served(script, *words)
    assert warm.stderr == plain.stderr
    assert b"warning" not in warm.stdout
    assert (b"pkg.py" in warm.stdout) == (b"pkg.py" in plain.stdout)
    assert warm.stdout.count(b"100%") == plain.stdout.count(b"100%"), warm.stdout


@pytest.mark.parametrize(("text", "word"), [(MEASURED, "--measure"), (HOOKED, "--hook")], ids=["measured", "hooked"])
def test_a_run_that_looks_at_imports_has_them(rig: "Rig", text: str, word: str) -> None:
    (rig.directory / "bin" / "part.py").write_text("'''a part'''\n")
    script = rig.script("looker", text)
    learned_from_runs(rig, script, word)
    assert rig.served(script, word).stdout == rig.plain(script, word).stdout
    assert rig.served(script).stdout == rig.plain(script).stdout
