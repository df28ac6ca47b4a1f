"""The trial of a wheel: it goes on after a demonstration that shows nothing, and fails for it."""

import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.shell_programs import add_program

PROJECT = Path(__file__).parents[2]
TELLS_A_TERMINAL = 'test "$FORCE_COLOR" && echo "starting the servers"; exec sleep 60'
TELLS_A_PAIR = 'echo "pair 1 of 5: stdlib"; exec sleep 60'
TELLS_NOTHING = "echo error: the server sent nothing; exit 1"


def wheel_name() -> str:
    """Return what the trial takes for the wheel of this interpreter."""
    values = sysconfig.get_config_vars()
    version = "cp" + (values.get("py_version_nodot_plat") or values["py_version_nodot"])
    family = "musllinux" if "musl" in (values.get("HOST_GNU_TYPE") or "") else "manylinux"
    return f"unsnarl-1-{version}-{version}-{family}_1_{platform.machine()}.whl"


def try_wheel(directory: Path, demo: str, smoke: str = "1 passed, 0 failed") -> subprocess.CompletedProcess[str]:
    """Try an empty wheel; an environment has this interpreter, a pip that installs nothing, and this demonstration."""
    scripts = directory / "scripts/distribution"
    scripts.mkdir(parents=True)
    for name in ("try-wheel", "result_line.py"):
        shutil.copy(PROJECT / "scripts/distribution" / name, scripts)
    add_program(directory / "scripts/smoke", f"echo {smoke}")
    add_program(directory / "ready/pip", "exit 0")
    add_program(directory / "ready/python", f'exec {sys.executable} "$@"')
    add_program(directory / "ready/unsnarl", f'case $1 in demo) {demo};; *) echo "ok: it can";; esac')
    add_program(directory / "python", f'mkdir "$3" && cp -r {directory}/ready "$3/bin"')
    (directory / wheel_name()).touch()
    command = [str(scripts / "try-wheel"), "--not-bare", str(directory / "python"), str(directory)]
    environment = {name: value for name, value in os.environ.items() if name != "FORCE_COLOR"}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=120)


def result(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the line that the trial ends with."""
    line: dict[str, str] = json.loads(done.stdout.splitlines()[-1].removeprefix("result: "))
    return line


@pytest.mark.parametrize("demo", [TELLS_A_TERMINAL, TELLS_A_PAIR])
def test_the_time_of_the_first_line_is_in_the_result(tmp_path: Path, demo: str) -> None:
    done = try_wheel(tmp_path, demo)
    line = result(done)
    assert (done.returncode, line["smoke"], line["probe"]) == (0, "1 passed, 0 failed", "ok: it can")
    assert float(line["demo_s"]) >= float(line["install_s"])


def test_a_demonstration_that_shows_nothing_fails_the_trial_and_does_not_end_it(tmp_path: Path) -> None:
    done = try_wheel(tmp_path, TELLS_NOTHING)
    line = result(done)
    assert (done.returncode, line["smoke"]) == (1, "1 passed, 0 failed")
    assert "demo_s" not in line
    assert "error: the demo shows nothing\n" in done.stderr


def test_a_failed_smoke_run_fails_the_trial(tmp_path: Path) -> None:
    done = try_wheel(tmp_path, TELLS_A_PAIR, smoke="1 passed, 1 failed")
    assert (done.returncode, result(done)["smoke"]) == (1, "1 passed, 1 failed")
