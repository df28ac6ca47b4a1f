"""The commands of docs/guide/recipes.md, as the page gives them, with small applications.

A server is asked whether the scheduler is in the process that answers, and ended as a supervisor does it. Recipes
whose program is not installed are skipped, by name; `scripts/recipes` installs all of them.
"""

from __future__ import annotations

import http.server
import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.recipe_programs import FILES
from tests.integration.recipe_running import (
    PAGE,
    Running,
    commands,
    environment,
    free_port,
    needs,
    page_file,
    serve,
    submit,
    words_of,
)
from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.conftest import Programs

pytestmark = pytest.mark.needs_gil


@pytest.fixture
def folder(programs: Programs) -> Path:
    for name, text in FILES.items():
        programs.write(name, text)
    return programs.directory


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


def test_a_unit_of_systemd(folder: Path) -> None:
    """Start it as systemd does: in the unit's directory, with systemd's own PATH and hardly another variable."""
    needs("gunicorn")
    unit = page_file("systemd", "ini").replace("/srv/app/venv/bin", sysconfig.get_path("scripts"))
    settings = dict(re.findall(r"^(\w+)=(.+)$", unit.replace("/srv/app", str(folder)), flags=re.MULTILINE))
    variables = {"LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin"}
    assert serve(settings["ExecStart"], Path(settings["WorkingDirectory"]), variables) == 0


def test_a_management_command(folder: Path) -> None:
    needs("django")
    done = subprocess.run(words_of(commands("Django")[1]), cwd=folder, env=environment(), check=False, timeout=120)
    assert done.returncode == 0


def what_is_noted(running: Running, folder: Path) -> bytes:
    """Wait until a task of a running program has written its note, and return it."""

    def is_noted() -> bool:
        running.check()
        return (folder / "noted").exists()

    until(is_noted)
    return (folder / "noted").read_bytes()


@pytest.mark.parametrize("number", [0, 1], ids=["threads", "prefork"])
def test_celery(folder: Path, number: int) -> None:
    needs("celery")
    with Running(words_of(commands("Celery")[number]), folder) as running:
        subprocess.run(
            [sys.executable, "-c", "import tasks; tasks.note.delay()"],
            cwd=folder, env=environment(), check=True, timeout=120,
        )  # fmt: skip
        assert what_is_noted(running, folder) == b"True"
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
        submit([], folder, f"tcp://127.0.0.1:{port}")
        serving.check()
        working.check()


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


@pytest.fixture
def ray_environment(folder: Path) -> Iterator[dict[str, str]]:
    """Ray's sockets need a short path, and its files stay out of the user's home."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as short:
        quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
        yield environment() | quiet | {"RAY_TMPDIR": short, "HOME": str(folder), "PYTHONPATH": str(folder)}


def test_a_program_that_starts_ray(folder: Path, ray_environment: dict[str, str]) -> None:
    needs("ray")
    done = subprocess.run(words_of(commands("Ray")[0]), cwd=folder, env=ray_environment, check=False, timeout=240)
    assert done.returncode == 0


def test_a_program_of_a_ray_cluster(folder: Path, ray_environment: dict[str, str]) -> None:
    needs("ray")
    port = free_port()
    command = commands("Ray")[1].replace("6379", str(port))
    with Running(words_of(command), folder, ray_environment) as running:

        def is_listening() -> bool:
            running.check()
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        until(is_listening)
        done = subprocess.run(
            [sys.executable, "attached.py"],
            cwd=folder, env=ray_environment | {"RAY_ADDRESS": f"127.0.0.1:{port}"}, check=False, timeout=240,
        )  # fmt: skip
        assert done.returncode == 0
        running.process.terminate()
        running.process.wait(120)


def airflow_environment(folder: Path) -> dict[str, str]:
    """Return an environment with an Airflow of its own, migrated, on ports of its own."""
    api, logs, trigger_logs = free_port(), free_port(), free_port()
    variables = environment() | {
        "HOME": str(folder),
        "PYTHONPATH": str(folder),
        "NOTED": str(folder / "noted"),
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{api}/execution/",
        "AIRFLOW__API__PORT": str(api),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(logs),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(trigger_logs),
    }
    subprocess.run(words_of("airflow db migrate"), cwd=folder, env=variables, check=True, timeout=240)
    return variables


def test_airflow(folder: Path) -> None:
    needs("airflow")
    with Running(words_of(commands("Airflow")[0]), folder, airflow_environment(folder)) as running:
        assert what_is_noted(running, folder) == b"True"
        running.process.terminate()
        running.process.wait(120)


def test_a_run_of_a_dag_of_airflow(folder: Path) -> None:
    needs("airflow")
    variables = airflow_environment(folder)
    subprocess.run(words_of(commands("Airflow")[1]), cwd=folder, env=variables, check=True, timeout=240)
    assert (folder / "noted").read_bytes() == b"True"


class _Runtime(http.server.BaseHTTPRequestHandler):
    """The runtime interface of a function: hands out one event, and keeps what is answered."""

    protocol_version = "HTTP/1.1"
    answers: queue.SimpleQueue[tuple[str, bytes]]
    events: queue.SimpleQueue[bytes]

    def do_GET(self) -> None:
        body = self.events.get()
        self.send_response(200)
        for name, value in (
            ("Lambda-Runtime-Aws-Request-Id", "first"),
            ("Lambda-Runtime-Deadline-Ms", str(10**13)),
            ("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:none:0:function:f"),
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(body))),
        ):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.answers.put((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(202)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_a_cold_start_of_a_function(folder: Path) -> None:
    needs("awslambdaric", "boto3")
    (folder / "entry.py").write_text(page_file("AWS Lambda", "python"))
    pack, start = commands("AWS Lambda")
    subprocess.run(words_of(pack), cwd=folder, env=environment(), check=True, timeout=240)

    class Runtime(_Runtime):
        answers: queue.SimpleQueue[tuple[str, bytes]] = queue.SimpleQueue()
        events: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    Runtime.events.put(b'{"number": 41}')
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Runtime) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        variables = environment() | {"AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}"}
        with Running(start.split(), folder, variables):
            path, answer = Runtime.answers.get(timeout=240)
        server.shutdown()
    assert path.endswith("/runtime/invocation/first/response")
    assert json.loads(answer) == [42, "first", "_unsnarl_pack.finder"]


@pytest.mark.parametrize("number", [0, 1], ids=["alone", "-n"])
def test_pytest(folder: Path, number: int) -> None:
    needs(*(["xdist"] if number else []))
    done = subprocess.run(
        words_of(commands("pytest")[number]),
        cwd=folder, env=environment(), check=False, timeout=120, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0


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
        "Ray",
        "Airflow",
        "Jupyter",
        "pytest",
        "tox",
        "pre-commit",
        "AWS Lambda",
    ]
    counted = [len(commands(heading)) for heading in headings]
    assert counted == [2, 1, 1, 1, 1, 2, 2, 3, 2, 2, 2, 2, 1, 2, 2]
    assert PAGE.read_text().count("```sh\n") == sum(counted)
