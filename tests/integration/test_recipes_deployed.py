"""Recipes where programs are deployed: a reload, an image, workers on other hosts, and jobs of CI.

As in test_recipes.py, the commands and the files are those of docs/guide/recipes.md.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.recipe_programs import FILES, GATED
from tests.integration.recipe_running import (
    Running,
    commands,
    environment,
    free_port,
    needs,
    page_file,
    served,
    submit,
    until_answered,
    words_of,
)
from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

FIRST_HOST, SECOND_HOST = "10.83.0.1", "10.83.0.2"


@pytest.fixture
def folder(programs: Programs) -> Path:
    for name, text in FILES.items():
        programs.write(name, text)
    return programs.directory


def wheels() -> Path:
    """Return the folder with the wheels that an environment of a recipe is made of."""
    folder = Path(os.environ.get("PIP_FIND_LINKS", os.devnull))
    if not any(folder.glob("unsnarl-*.whl")):
        pytest.skip("PIP_FIND_LINKS names no folder with a wheel of unsnarl: scripts/recipes makes one")
    return folder


def test_a_reload_and_a_graceful_stop_of_gunicorn(folder: Path) -> None:
    """After HUP the changed application answers; a request that is in hand at TERM is answered before the end."""
    needs("gunicorn")
    port = free_port()
    os.mkfifo(folder / "gate")
    with Running(words_of(commands("gunicorn")[0], port), folder) as running, ThreadPoolExecutor(1) as pool:
        until_answered(running, port, b"True", otherwise=(None,))
        (folder / "app.py").write_text(GATED)
        running.process.send_signal(signal.SIGHUP)
        until_answered(running, port, b"True again", otherwise=(None, b"True"))
        until(lambda: running.printed().count(b"Worker exiting") == 2)  # the earlier ones answer until then

        request = pool.submit(urllib.request.urlopen, f"http://127.0.0.1:{port}/gate", timeout=60)
        gate = os.open(folder / "gate", os.O_WRONLY)  # opens when the application has opened the other end
        running.process.terminate()
        until(lambda: b"Handling signal: term" in running.printed())
        os.close(gate)
        with request.result() as response:
            assert response.read() == b"True again"
        assert running.process.wait(60) == 0


def test_the_steps_of_an_image(folder: Path) -> None:
    """Follow the second stage of the Dockerfile in a virtual environment; the image itself is not built."""
    packages = wheels()
    if not any(packages.glob("gunicorn-*.whl")):
        pytest.skip("PIP_FIND_LINKS has no wheel of gunicorn: scripts/recipes makes one")
    stage = page_file("Docker", "dockerfile").split("\nFROM ")[-1]
    (install,) = re.findall(r"^RUN (.+)$", stage, flags=re.MULTILINE)
    (start,) = re.findall(r"^CMD (.+)$", stage, flags=re.MULTILINE)
    image = folder / "image"
    subprocess.run([sys.executable, "-m", "venv", image], check=True, timeout=120)
    (folder / "requirements.txt").write_text("gunicorn\n")
    variables = environment() | {"PATH": f"{image / 'bin'}:{os.environ['PATH']}"}
    subprocess.run(
        ["sh", "-ec", install.replace("/wheels/*.whl", f"{packages}/unsnarl-*.whl")],
        cwd=folder, env=variables, check=True, timeout=240,
    )  # fmt: skip
    port = free_port()
    words = [word.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for word in json.loads(start)]
    assert served([str(image / "bin" / words[0]), *words[1:]], port, folder, variables) == 0


@pytest.mark.parametrize("program", ["uwsgi"])
def test_unsnarl_run_refuses(folder: Path, program: str) -> None:
    needs("uwsgidecorators")
    done = subprocess.run(
        words_of(f"unsnarl run -- {program} --version"),
        cwd=folder, env=environment(), check=False, timeout=120, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (126, "")
    assert re.fullmatch(rf"error: '.*/{program}' is not a Python script\nhint: .+\n", done.stderr)


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Two hosts of one network, as far as their processes can tell: network namespaces with a cable between them."""
    needs("distributed")
    if shutil.which("ip") is None:
        pytest.skip("there is no command `ip`")
    first, second = (f"recipes-{os.getpid()}-{number}" for number in (1, 2))
    steps = [
        f"ip netns add {first}",
        f"ip netns add {second}",
        f"ip link add cable netns {first} type veth peer name cable netns {second}",
        f"ip -n {first} address add {FIRST_HOST}/24 dev cable",
        f"ip -n {second} address add {SECOND_HOST}/24 dev cable",
        *(f"ip -n {host} link set {device} up" for host in (first, second) for device in ("lo", "cable")),
    ]
    try:
        for step in steps:
            done = subprocess.run(step.split(), check=False, capture_output=True, text=True)
            if done.returncode != 0:
                pytest.skip(f"this machine allows no network namespaces: {done.stderr.strip()}")
        yield first, second
    finally:
        for host in (first, second):
            subprocess.run(["ip", "netns", "delete", host], check=False, capture_output=True)


@pytest.mark.parametrize("number", [0, 1], ids=["run", "preload"])
def test_a_dask_worker_on_another_host(folder: Path, hosts: tuple[str, str], number: int) -> None:
    first, second = (["ip", "netns", "exec", host] for host in hosts)
    scheduler = f"dask scheduler --host {FIRST_HOST} --port 8786 --no-dashboard"
    worker = commands("Dask")[number].replace("127.0.0.1", FIRST_HOST)
    with (
        Running([*first, *words_of(scheduler)], folder) as serving,
        Running([*second, *words_of(worker)], folder) as working,
    ):
        submit(first, folder, f"tcp://{FIRST_HOST}:8786", SECOND_HOST)
        serving.check()
        working.check()


def set_by_a_job(folder: Path, step: str) -> dict[str, str]:
    """Return the variable that a step of a job sets for the later ones."""
    file = folder / "variables"
    runner = {"RUNNER_TEMP": str(folder), "GITHUB_ENV": str(file)}
    subprocess.run(["sh", "-ec", step], cwd=folder, env=environment() | runner, check=True, timeout=60)
    name, _, value = file.read_text().strip().partition("=")
    return {name: value}


def test_make_in_a_job_of_ci(folder: Path) -> None:
    needs("black")
    if shutil.which("make") is None:
        pytest.skip("there is no command `make`")
    # With --require the command fails where it would run plainly.
    run, required = "unsnarl warm run -- ", "unsnarl warm run --require -- "
    makefile = page_file("make and CI", "make")
    assert run in makefile
    (folder / "Makefile").write_text(makefile.replace(run, required))
    for path in folder.glob("*.py"):
        path.unlink()
    for name in ("one.py", "other.py"):
        (folder / name).write_text("x = 1\n")
    setting, start, make, stop = re.findall(r"run: (.+)$", page_file("make and CI", "yaml"), flags=re.MULTILINE)
    variables = environment() | {"HOME": str(folder), "LC_ALL": "C"} | set_by_a_job(folder, setting)
    assert variables["UNSNARL_WARM_DIR"] == str(folder / "unsnarl")

    def call(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-ec", command],
            cwd=folder, env=variables, check=False, timeout=120, capture_output=True, text=True,
        )  # fmt: skip

    try:
        assert call(start).returncode == 0
        first = call(make)
    finally:
        assert call(stop).returncode == 0
    assert first.returncode == 0, first.stdout + first.stderr
    assert {path.name for path in folder.glob("*.checked")} == {"one.checked", "other.checked"}
    assert call(make).returncode == 0  # nothing has changed, so nothing is called
    (folder / "one.py").write_text("x = 2\n")
    assert "Error 69" in call(make).stderr  # no server is left
