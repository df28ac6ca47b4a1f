"""Prepares a suite: a virtual environment with the package and unsnarl, and a directory with the tests.

Both are kept in a folder of their own for the next run. Invariant: nothing is installed into the environment that runs
crater, and every package comes from the package registry through pip, at the version of the manifest. Only tests may
come from a project's repository, at the tag of that version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path

from bench.crater.manifest import Suite

INSTALL_LIMIT_S = 600.0
ALWAYS = ("pytest",)
"""What runs the tests, unless the suite requires another version."""


TREES = {"sdist": "source distribution", "git": "repository"}
"""The sources whose tests are in a tree of files of their own, and what that tree is called."""


class Unprepared(Exception):  # noqa: N818 -- a state of a suite, not a mistake
    """A suite cannot be prepared; the message says why."""


def unsnarl_wheel(folder: Path, version: str) -> Path:
    """Return the newest wheel of unsnarl in a folder for a version of CPython, as ``3.11.7`` or ``3.14.7t``.

    Raises:
        Unprepared: there is none.
    """
    tag = f"cp{''.join(version.split('.')[:2])}"
    abi = tag + "t" * version.endswith("t")
    wheels = sorted(folder.glob(f"unsnarl-*-{tag}-{abi}-*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    if not wheels:
        raise Unprepared(f"there is no wheel of unsnarl for CPython {version} in {folder}")
    return wheels[-1]


def described(wheel: Path) -> str:
    """Return the version of a wheel and the digest of its bytes, which alone say what was tried."""
    version = wheel.name.split("-")[1]
    return f"{version} (sha256 {hashlib.sha256(wheel.read_bytes()).hexdigest()[:16]})"


def prepare(suite: Suite, folder: Path, wheel: Path, python: str) -> tuple[Path, Path]:
    """Return the interpreter of the suite's environment, and the directory to run its tests in.

    Raises:
        Unprepared: a step failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    interpreter = _environment(suite, folder, wheel, python)
    if suite.source in TREES:
        tree = _tree(suite, folder)
        if not (tree / suite.tests[0]).exists():
            raise Unprepared(f"its {TREES[suite.source]} has no {suite.tests[0]}")
        return interpreter, tree
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    return interpreter, empty


EXISTING = """
import sys
from importlib.util import find_spec
print(*(name for name in sys.argv[1:] if find_spec("test." + name)))
"""


def of_interpreter(suite: Suite, interpreter: Path) -> Suite:
    """Return the suite without those modules of CPython's tests that this interpreter's version does not have.

    Raises:
        Unprepared: it has none of them.
    """
    if suite.source != "cpython":
        return suite
    words = [str(interpreter), "-c", EXISTING, *suite.tests]
    names = subprocess.run(words, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S).stdout.split()
    if not names:
        raise Unprepared("this interpreter has none of its modules")
    return replace(suite, tests=tuple(names))


def _environment(suite: Suite, folder: Path, wheel: Path, python: str) -> Path:
    """Make the environment, unless it is there; install unsnarl again if its wheel is another one."""
    venv = folder / "venv"
    interpreter = venv / "bin" / "python"
    requirements = [*suite.requires] if suite.source == "cpython" else [suite.distribution, *ALWAYS, *suite.requires]
    # This pip, for that environment: to install pip there takes longer than most packages.
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(interpreter),
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    installed, ours = folder / "installed", folder / "installed-unsnarl"
    wanted = "\n".join([*requirements, *suite.folders])
    if not installed.is_file() or installed.read_text() != wanted:
        shutil.rmtree(venv, ignore_errors=True)
        ours.unlink(missing_ok=True)
        _call([python, "-m", "venv", "--without-pip", str(venv)], "no virtual environment")
        if requirements:
            _call([*pip, "--prefer-binary", *requirements], "pip cannot install it")
        for name in suite.folders:
            for packages in venv.glob("lib/python*/site-packages"):
                (packages / name).mkdir(parents=True, exist_ok=True)
        installed.write_text(wanted)
    made = str(wheel.stat().st_mtime_ns)
    if not ours.is_file() or ours.read_text() != made:
        _call([*pip, "--no-deps", "--force-reinstall", str(wheel)], "pip cannot install unsnarl")
        ours.write_text(made)
    return interpreter


def _tree(suite: Suite, folder: Path) -> Path:
    """Return the folder with the suite's files, without those to remove; it is made unless it is there."""
    tree = folder / f"source-{suite.version}"
    if tree.is_dir():
        return tree
    temporary = folder / "unpacking"
    shutil.rmtree(temporary, ignore_errors=True)
    root = _cloned(suite, temporary) if suite.source == "git" else _unpacked(suite, folder, temporary)
    for path in suite.remove:
        target = root / path
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    os.rename(root, tree)
    return tree


def _cloned(suite: Suite, folder: Path) -> Path:
    """Fetch the files of the suite's tag alone, which need not be the newest ones."""
    git = ["git", "-c", "core.askPass=true", "-C", str(folder)]  # asks nobody for a password
    folder.mkdir()
    _call([*git, "init", "--quiet"], "no repository")
    _call([*git, "fetch", "--quiet", "--depth", "1", suite.repository, f"refs/tags/{suite.tag}"], "no repository")
    _call([*git, "checkout", "--quiet", "FETCH_HEAD"], f"no tag {suite.tag}")
    return folder


def _unpacked(suite: Suite, folder: Path, temporary: Path) -> Path:
    downloads = folder / "sdist"
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    requirement = f"{suite.name}=={suite.version}"
    _call([*pip, "--no-binary", suite.name, "--dest", str(downloads), requirement], "no source distribution")
    archives = [*downloads.glob("*.tar.gz"), *downloads.glob("*.zip")]
    if not archives:
        raise Unprepared("no source distribution")
    _unpack(archives[0], temporary)
    (root,) = temporary.iterdir()
    return root


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder)
        return
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")


def _call(words: list[str], what: str) -> None:
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=INSTALL_LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise Unprepared(f"{what}: no end after {INSTALL_LIMIT_S:.0f} s") from None
    if done.returncode != 0:
        lines = (done.stderr.strip() or done.stdout.strip()).splitlines() or [f"status {done.returncode}"]
        errors = [line for line in lines if line.lstrip().lower().startswith("error")]
        raise Unprepared(f"{what}: {(errors or lines)[-1].strip()}")
