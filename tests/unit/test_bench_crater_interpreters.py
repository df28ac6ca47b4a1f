"""``scripts/crater``: how the suites, the interpreter and the wheel for it are chosen."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.crater import manifest, preparation
from bench.crater.__main__ import main
from tests.shell_programs import add_program

ROOT = Path(__file__).resolve().parents[2]
VERSION = platform.python_version()


def test_a_pattern_names_all_its_suites(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--only", "cpython-*,h11"]) == 0
    named = {line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert named == {"h11", *(suite.name for suite in manifest.read() if suite.source == "cpython")}


def test_of_several_wheels_the_newest_for_the_interpreter_is_taken(tmp_path: Path) -> None:
    for number, tag in enumerate(("cp311-cp311", "cp313-cp313", "cp314-cp314t", "cp31-cp31", "cp314-cp314")):
        wheel = tmp_path / f"unsnarl-1.0-{tag}-linux_x86_64.whl"
        wheel.touch()
        os.utime(wheel, (number, number))
    newer = tmp_path / "unsnarl-1.1-cp311-cp311-linux_x86_64.whl"
    newer.touch()
    assert preparation.unsnarl_wheel(tmp_path, "3.11.7") == newer
    assert preparation.unsnarl_wheel(tmp_path, "3.14.0rc1").name == "unsnarl-1.0-cp314-cp314-linux_x86_64.whl"
    assert preparation.unsnarl_wheel(tmp_path, "3.14.0rc1t").name == "unsnarl-1.0-cp314-cp314t-linux_x86_64.whl"
    with pytest.raises(preparation.Unprepared, match=r"no wheel of unsnarl for CPython 3\.12\.1 in"):
        preparation.unsnarl_wheel(tmp_path, "3.12.1")


def test_the_wheel_is_built_with_the_interpreter_that_is_tested(tmp_path: Path) -> None:
    said = tmp_path / "said"
    other = tmp_path / "other"
    # pip starts the interpreter that it is to work for; this one only notes that and whether another run could build at
    # the same time, and gives its version.
    note = f'flock --nonblock {ROOT} echo "builds beside" >> {said}; echo "$*" >> {said}; exit 1'
    add_program(other, f'case "$*" in *python_version*) exec {sys.executable} "$@";; esac; {note}')
    words = ["--only", "h11", "--python", str(other), "--cache", str(tmp_path / "cache")]
    assert main([*words, "--data", str(tmp_path / "data")]) == 2
    (words_of_pip,) = said.read_text().splitlines()
    assert f"wheel --quiet --no-deps -w {tmp_path}/cache/{VERSION}/wheel {ROOT}" in words_of_pip


@pytest.mark.parametrize(("is_free_threaded", "version"), [(0, VERSION), (1, f"{VERSION}t")])
def test_a_free_threaded_interpreter_has_environments_and_results_of_its_own(
    tmp_path: Path, is_free_threaded: int, version: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    code = "import sys, sysconfig; sysconfig.get_config_vars()['Py_GIL_DISABLED'] = int(sys.argv[1]); exec(sys.argv[2])"
    add_program(other, f'exec {sys.executable} -c "{code}" {is_free_threaded} "$2"')
    assert main(["--only", "h11", "--python", str(other), "--cache", str(tmp_path), "--wheel", str(tmp_path)]) == 2
    assert (tmp_path / version / "lock").is_file()
    assert f"there is no wheel of unsnarl for CPython {version} in" in capsys.readouterr().err


def test_two_runs_do_not_share_their_environments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / VERSION
    folder.mkdir()
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert main(["--only", "h11", "--cache", str(tmp_path), "--data", str(tmp_path / "data")]) == 2
    assert capsys.readouterr().err == (
        f"error: another run uses the environments in {folder}\n"
        "hint: wait until it has ended, or choose another folder by --cache\n"
    )


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Return the script in a folder of its own, where Debian's root is this machine."""
    scripts = tmp_path / "project" / "scripts"
    scripts.mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "crater", scripts)
    add_program(scripts / "debian-root", f'shift\necho "root: $*" >> {tmp_path}/said\nexec "$@"')
    return scripts / "crater"


def test_debians_interpreter_runs_the_suites_with_a_wheel_of_its_own(copied: Path, tmp_path: Path) -> None:
    programs, venv, said = tmp_path / "bin", tmp_path / "venv", tmp_path / "said"
    own = tmp_path / ".cache" / "unsnarl-crater" / "python3.15"
    add_program(programs / "python", "echo abc123 with changes")
    add_program(programs / "python3.15", f'echo "python3.15: $*" >> {said}\nmkdir -p "$3"\ncp -r {venv} "$3/bin"')
    beside = 'flock --nonblock . echo "pip: builds beside another"'
    note = f'case $1 in wheel) {beside};; esac >> {said}\necho "pip: $*" >> {said}'
    add_program(venv / "pip", f"{note}\nmkdir -p {own}/wheel\n: > {own}/wheel/unsnarl-1.whl")
    add_program(venv / "python", f'echo "crater of $UNSNARL_SOURCES: $*" >> {said}\nexit 77')
    env = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    words = ["--debian", "python3.15", "--only", "cpython-*", "--offline"]
    done = subprocess.run([copied, *words], env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (77, "")
    inside, made, built, installed, run = said.read_text().splitlines()
    assert inside.endswith("scripts/crater --inside python3.15 --only cpython-* --offline")
    assert made == f"python3.15: -m venv {own}"
    assert built.startswith("pip: wheel ")
    assert built.endswith(f"--wheel-dir {own}/wheel .")
    assert installed.startswith("pip: install ")
    assert installed.endswith(f" {own}/wheel/unsnarl-1.whl")
    assert run == (f"crater of abc123 with changes: -m bench.crater --wheel {own}/wheel --only cpython-* --offline")


def test_a_run_with_debians_interpreter_leaves_that_of_another_run_alone(copied: Path, tmp_path: Path) -> None:
    own = tmp_path / ".cache" / "unsnarl-crater" / "python3.15"
    wheel = own / "wheel" / "unsnarl-1.whl"
    wheel.parent.mkdir(parents=True)
    wheel.touch()
    with open(own / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        words = [str(copied), "--inside", "python3.15", "--only", "h11"]
        env = os.environ | {"HOME": str(tmp_path)}
        done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: another run uses the environments in {own}\nhint: wait until it has ended\n"
    assert wheel.exists()


@pytest.mark.parametrize("words", [["--debian"], ["--debian", "python3.13"], ["--debian", "--only"]])
def test_debian_has_two_interpreters(copied: Path, words: list[str], tmp_path: Path) -> None:
    done = subprocess.run([copied, *words], capture_output=True, text=True, check=False, timeout=60)
    named = words[1] if len(words) > 1 else ""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: --debian takes python3.14 or python3.15, not '{named}'\n"
        "hint: --python PATH takes any other interpreter\n"
    )
    assert not (tmp_path / "said").exists()
