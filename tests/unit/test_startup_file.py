"""``unsnarl.pth``: the file that every start of an interpreter reads, with or without ``unsnarl run``.

Each case puts a copy of the file, and a stand-in for the package, into a directory of its own, and makes ``site`` read
that directory as it reads site-packages.
"""

import subprocess
import sys
from pathlib import Path

import pytest

STARTUP_FILE = Path(__file__).parents[2] / "python" / "unsnarl.pth"

READ_AND_SHOW = """
import sys, os, site
site.addsitedir(sys.argv[2])  # what site itself needs for any such file
before = set(sys.modules)
site.addsitedir(sys.argv[1])
print(*sorted(set(sys.modules) - before))
"""

BROKEN_PACKAGES: dict[str, dict[str, str]] = {
    "no package": {},
    "no boot module": {"unsnarl/__init__.py": ""},
    "a boot module that imports what is gone": {"_unsnarl_boot.py": "import unsnarl.gone"},
    "an empty directory": {"unsnarl/__pycache__/left": ""},
    "a boot module that fails": {"_unsnarl_boot.py": "1 / 0"},
    "a truncated file": {"_unsnarl_boot.py": "def start(:"},
}


def start(site_directory: Path, files: dict[str, str], environment: dict[str, str]) -> str:
    """Return the modules that reading the file has loaded; fails if it wrote to stderr."""
    inert_directory = site_directory / "inert"
    texts = {**files, STARTUP_FILE.name: STARTUP_FILE.read_text(), "inert/inert.pth": "# nothing"}
    for name, text in texts.items():
        path = site_directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    # -S keeps the file that is installed with unsnarl out of it.
    command = [sys.executable, "-S", "-c", READ_AND_SHOW, str(site_directory), str(inert_directory)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def test_it_is_one_line_that_site_executes() -> None:
    (line,) = STARTUP_FILE.read_text().splitlines()
    assert line.startswith("import ")


def test_a_plain_start_loads_nothing(tmp_path: Path) -> None:
    whole = {"unsnarl/__init__.py": "", "_unsnarl_boot.py": ""}
    assert start(tmp_path, whole, environment={}) == ""


def test_the_variable_loads_the_boot_module_and_nothing_else(tmp_path: Path) -> None:
    whole = {"unsnarl/__init__.py": "", "_unsnarl_boot.py": ""}
    assert start(tmp_path, whole, environment={"UNSNARL_RUN": "anything"}) == "_unsnarl_boot"


@pytest.mark.parametrize("files", BROKEN_PACKAGES.values(), ids=BROKEN_PACKAGES.keys())
def test_a_half_removed_installation_is_silent(tmp_path: Path, files: dict[str, str]) -> None:
    start(tmp_path, files, environment={"UNSNARL_RUN": "anything"})
