"""What the tests of the recipes share: the page's commands and files, and a command that runs until it is ended."""

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
from typing import Self

import pytest

from tests.conftest import clean_environment
from tests.integration.waiting import until

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "recipes.md"
PORT = "8000"


def commands(heading: str) -> list[str]:
    """Return the commands below a heading of the page."""
    section = re.split(rf"^## {heading}$", PAGE.read_text(), flags=re.MULTILINE)[1].split("\n## ")[0]
    return re.findall(r"^```sh\n(.+)\n```$", section, flags=re.MULTILINE)


def needs(*modules: str) -> None:
    for module in modules:
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: scripts/recipes installs it")


def page_file(heading: str, kind: str) -> str:
    """Return the file of a kind that a section of the page shows."""
    section = re.split(rf"^## {heading}$", PAGE.read_text(), flags=re.MULTILINE)[1].split("\n## ")[0]
    (text,) = re.findall(rf"^```{kind}\n(.+?)^```$", section, flags=re.MULTILINE | re.DOTALL)
    return str(text)


def words_of(command: str, port: int | None = None) -> list[str]:
    words = command.replace(PORT, str(port)).split() if port else command.split()
    return [os.path.join(sysconfig.get_path("scripts"), words[0]), *words[1:]]


def environment() -> dict[str, str]:
    path = f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}"
    return {**clean_environment(), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


class Running:
    """A command in a session of its own; what is left of it is killed at the end."""

    def __init__(self, words: list[str], folder: Path, variables: dict[str, str] | None = None) -> None:
        self._path = folder / "log"
        self._log = self._path.open("wb")
        self.process = subprocess.Popen(
            words, cwd=folder, env=variables or environment(), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log,
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
            pytest.fail(f"it ended with {self.process.returncode}: {self.printed().decode(errors='replace')}")

    def printed(self) -> bytes:
        """Return what it has printed so far, on both streams."""
        return self._path.read_bytes()


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


def serve(command: str, folder: Path, variables: dict[str, str] | None = None) -> int:
    """Start a server by a command of the page, let it answer, end it, and return its exit status."""
    port = free_port()
    return served(words_of(command, port), port, folder, variables)


def served(words: list[str], port: int, folder: Path, variables: dict[str, str] | None = None) -> int:
    """Start a server, let it answer that the scheduler is in, end it, and return its exit status."""
    with Running(words, folder, variables) as running:
        until_answered(running, port, b"True", otherwise=(None,))
        running.process.terminate()
        return running.process.wait(60)


def until_answered(running: Running, port: int, wanted: bytes, *, otherwise: tuple[bytes | None, ...]) -> None:
    """Wait until a running server gives an answer; until then it may only give one of the others."""

    def has_answered() -> bool:
        running.check()
        given = answer(port)
        assert given in (wanted, *otherwise)
        return given == wanted

    until(has_answered)


def submit(before: list[str], folder: Path, *words: str) -> None:
    """Run submit.py, which has a task run on a Dask cluster, after words that say where."""
    variables = environment() | {"PYTHONPATH": str(folder)}
    subprocess.run([*before, sys.executable, "submit.py", *words], cwd=folder, env=variables, check=True, timeout=120)
