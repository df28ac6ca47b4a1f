"""The commands of docs/guide/recipes.md, as the page gives them, with small applications.

A server is asked whether the scheduler is in the process that answers, and ended as a supervisor does it. Recipes
whose program is not installed are skipped, by name; `scripts/recipes` installs all of them.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import urllib.error
import urllib.request
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from tests.conftest import clean_environment
from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "recipes.md"
PORT = "8000"

STATE = "import unsnarl.gil\nstate = lambda: str(unsnarl.gil.installed()).encode()\n"
FILES = {
    "state.py": STATE,
    "app.py": """
from state import state
def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [state()]
""",
    "asgi.py": """
from state import state
async def application(scope, receive, send):
    if scope["type"] != "http":
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": state()})
""",
    "manage.py": """
import sys
from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpResponse
from django.urls import path
from state import state
settings.configure(DEBUG=True, ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"])
urlpatterns = [path("", lambda request: HttpResponse(state()))]
if __name__ == "__main__":
    execute_from_command_line(sys.argv)
""",
    "tasks.py": """
import os
from celery import Celery
from state import state
os.makedirs("queue", exist_ok=True)
app = Celery("tasks", broker="filesystem://")
app.conf.broker_transport_options = {
    "data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "queue", "processed_folder": "queue",
}
@app.task
def note():
    with open("noted.new", "wb") as file:
        file.write(state())
    os.rename("noted.new", "noted")
""",
    "scheduled.py": """
import unsnarl.gil
unsnarl.gil.install()
from app import application
""",
    "preload.py": "import unsnarl.gil\nunsnarl.gil.install()\n",
    "cluster.py": """
from dask.distributed import Client, LocalCluster
from state import state
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        assert (state(), client.submit(state).result(timeout=60)) == (b"True", b"True")
""",
    "submit.py": """
import sys
from dask.distributed import Client
from state import state
with Client(sys.argv[1], timeout=60) as client:
    client.wait_for_workers(1, timeout=60)
    assert client.submit(state).result(timeout=60) == b"True"
""",
    "notebook.ipynb": """
{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [
 {"cell_type": "code", "id": "a", "metadata": {}, "execution_count": null, "outputs": [],
  "source": "from state import state; assert state() == b'True'; open('noted', 'w').close()"}]}
""",
    "test_it.py": "from state import state\ndef test_it():\n    assert state() == b'True'\n",
}


def commands(heading: str) -> list[str]:
    """Return the commands below a heading of the page."""
    section = re.split(rf"^## {heading}$", PAGE.read_text(), flags=re.MULTILINE)[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.+)\n```$", section, flags=re.MULTILINE)


def needs(*modules: str) -> None:
    for module in modules:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: scripts/recipes installs it")


@pytest.fixture
def folder(programs: Programs) -> Path:
    for name, text in FILES.items():
        programs.write(name, text)
    return programs.directory


def words_of(command: str, port: int | None = None) -> list[str]:
    words = command.replace(PORT, str(port)).split() if port else command.split()
    return [os.path.join(sysconfig.get_path("scripts"), words[0]), *words[1:]]


def environment() -> dict[str, str]:
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    return {**clean_environment(), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


class Running:
    """A command in a session of its own; what is left of it is killed at the end."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._log = (folder / "log").open("wb+")
        self.process = subprocess.Popen(
            words, cwd=folder, env=environment(), stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
            start_new_session=True,
        )  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self._log.close()

    def check(self) -> None:
        """Fail with what it printed if it has ended."""
        if self.process.poll() is not None:
            self._log.seek(0)
            pytest.fail(f"it ended with {self.process.returncode}: {self._log.read().decode(errors='replace')}")


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def answer(port: int) -> bytes | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as response:
            return bytes(response.read())
    except (urllib.error.URLError, ConnectionError):
        return None


def serve(command: str, folder: Path) -> int:
    """Start a server, let it answer that the scheduler is in, end it, and return its exit status."""
    port = free_port()
    with Running(words_of(command, port), folder) as running:
        seen: list[bytes] = []

        def has_answered() -> bool:
            running.check()
            seen.extend(filter(None, [answer(port)]))
            return bool(seen)

        until(has_answered)
        assert seen == [b"True"]
        running.process.terminate()
        return running.process.wait(60)


@pytest.mark.parametrize(
    ("heading", "number", "module", "statuses"),
    [
        ("gunicorn", 0, "gunicorn", {0}),
        ("gunicorn", 1, "gunicorn", {0}),
        ("waitress", 0, "waitress", {0, -signal.SIGTERM}),
        ("uvicorn", 0, "uvicorn", {0, -signal.SIGTERM}),
        ("hypercorn", 0, "hypercorn", {0, -signal.SIGTERM}),
        ("uWSGI", 0, "uwsgidecorators", {0}),
        ("Django", 0, "django", {0, -signal.SIGTERM}),
    ],
)
def test_a_server(folder: Path, heading: str, number: int, module: str, statuses: set[int]) -> None:
    needs(module)
    assert serve(commands(heading)[number], folder) in statuses


def test_a_management_command(folder: Path) -> None:
    needs("django")
    done = subprocess.run(words_of(commands("Django")[1]), cwd=folder, env=environment(), check=False, timeout=120)
    assert done.returncode == 0


@pytest.mark.parametrize("number", [0, 1], ids=["threads", "prefork"])
def test_celery(folder: Path, number: int) -> None:
    needs("celery")
    with Running(words_of(commands("Celery")[number]), folder) as running:
        subprocess.run(
            [sys.executable, "-c", "import tasks; tasks.note.delay()"],
            cwd=folder, env=environment(), check=True, timeout=120,
        )  # fmt: skip

        def is_noted() -> bool:
            running.check()
            return (folder / "noted").exists()

        until(is_noted)
        assert (folder / "noted").read_bytes() == b"True"
        running.process.terminate()
        assert running.process.wait(60) == 0


@pytest.mark.parametrize("number", [0, 1], ids=["run", "preload"])
def test_a_dask_worker(folder: Path, number: int) -> None:
    needs("distributed")
    port = free_port()
    scheduler = ["dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard"]
    with (
        Running(words_of(" ".join(scheduler)), folder) as serving,
        Running(words_of(commands("Dask")[number].replace("8786", str(port))), folder) as working,
    ):
        done = subprocess.run(
            [sys.executable, "submit.py", f"tcp://127.0.0.1:{port}"],
            cwd=folder, env=environment() | {"PYTHONPATH": str(folder)}, check=False, timeout=120,
        )  # fmt: skip
        serving.check()
        working.check()
        assert done.returncode == 0


def test_a_local_cluster(folder: Path) -> None:
    needs("distributed")
    done = subprocess.run(words_of(commands("Dask")[2]), cwd=folder, env=environment(), check=False, timeout=120)
    assert done.returncode == 0


def test_a_jupyter_kernel(folder: Path) -> None:
    needs("ipykernel", "nbclient", "jupyter_client")
    kernel = re.search(r"^```json\n(.+?)^```$", PAGE.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert kernel is not None
    (folder / "kernels" / "unsnarl").mkdir(parents=True)
    (folder / "kernels" / "unsnarl" / "kernel.json").write_text(kernel[1])
    install, execute = commands("Jupyter")
    prefix = folder / "prefix"  # instead of the environment, which the tests leave as it is
    for command in (install.replace("--sys-prefix", f"--prefix {prefix}"), execute):
        subprocess.run(
            words_of(command), cwd=folder, check=True, timeout=120,
            env=environment() | {"JUPYTER_PATH": str(prefix / "share" / "jupyter"), "HOME": str(folder)},
        )  # fmt: skip
    assert (folder / "noted").exists()


@pytest.mark.parametrize("number", [0, 1], ids=["alone", "-n"])
def test_pytest(folder: Path, number: int) -> None:
    needs(*(["xdist"] if number else []))
    done = subprocess.run(
        words_of(commands("pytest")[number]),
        cwd=folder, env=environment(), check=False, timeout=120, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0


def page_file(heading: str, kind: str) -> str:
    """Return the file of a kind that a section of the page shows."""
    section = re.split(rf"^## {heading}$", PAGE.read_text(), flags=re.MULTILINE)[1].split("\n## ")[0]
    (text,) = re.findall(rf"^```{kind}\n(.+?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    return str(text)


def test_tox(folder: Path) -> None:
    needs("tox")
    if not any(Path(os.environ.get("PIP_FIND_LINKS", os.devnull)).glob("unsnarl-*.whl")):
        pytest.skip("PIP_FIND_LINKS names no folder with a wheel of unsnarl: scripts/recipes makes one")
    (folder / "tox.ini").write_text(page_file("tox", "ini"))
    (command,) = commands("tox")
    done = subprocess.run(
        words_of(command), cwd=folder, env=environment() | {"HOME": str(folder)}, check=False, timeout=300,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_pre_commit(folder: Path) -> None:
    needs("pre_commit", "black")
    # With --require the hook fails where it would run plainly.
    entry, required = "unsnarl warm run -- ", "unsnarl warm run --require -- "
    config = page_file("pre-commit", "yaml")
    assert entry in config
    (folder / ".pre-commit-config.yaml").write_text(config.replace(entry, required))
    (folder / "late.py").write_text("x  =  1\n")
    variables = environment() | {"HOME": str(folder), "UNSNARL_WARM_DIR": str(folder / "warm")}

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, cwd=folder, env=variables, check=False, timeout=120, capture_output=True, text=True
        )

    for words in (["init", "-q"], ["add", "late.py", ".pre-commit-config.yaml"]):
        assert call("git", *words).returncode == 0
    start, commit = (words_of(command) for command in commands("pre-commit"))
    try:
        assert call(*start).returncode == 0
        first, again = call(*commit), call(*commit)
    finally:
        call(start[0], "warm", "stop")
    unserved = call(*commit)
    assert (first.returncode, again.returncode) == (1, 0), first.stdout + again.stdout
    assert (folder / "late.py").read_text() == "x = 1\n"
    assert "exit code: 69" in unserved.stdout, unserved.stdout


def test_every_command_of_the_page_is_one_of_these() -> None:
    headings = [
        "gunicorn",
        "waitress",
        "uvicorn",
        "hypercorn",
        "uWSGI",
        "Django",
        "Celery",
        "Dask",
        "Jupyter",
        "pytest",
        "tox",
        "pre-commit",
    ]
    counted = [len(commands(heading)) for heading in headings]
    assert counted == [2, 1, 1, 1, 1, 2, 2, 3, 2, 2, 1, 2]
    assert PAGE.read_text().count("```sh\n") == sum(counted)
