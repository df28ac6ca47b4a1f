"""Fixtures for warm commands: a runtime directory, an environment and a server of their own."""

import contextlib
import os
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.waiting import WATCHDOG_S, until

UNSNARL = os.path.join(sysconfig.get_path("scripts"), "unsnarl")
DROPPED = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "UNSNARL", "UNSNARL_RUN")
NOT_WARM = 69
"""The client's status where no worker took the command (``NOT_WARM`` in crates/client/src/verb.rs)."""
SILENCE_S = 5.0
"""How long it waits for a word (``READY_TIMEOUT_S`` in crates/client/src/call/handover.rs), and a worker for it."""


class Rig:
    """Runs scripts plain and warm, in a directory that is removed afterwards."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.house = directory / "house"
        self.env = {name: value for name, value in os.environ.items() if name not in DROPPED}
        self.env |= {"UNSNARL_WARM_DIR": str(self.house), "XDG_DATA_HOME": str(directory / "data")}
        # If the tests themselves are killed, nothing stops the servers: the default would keep them for an hour.
        self.env["UNSNARL_WARM_IDLE"] = "120"
        # The first call learns; test_warm_economy.py has the tests of the account.
        self.env["UNSNARL_WARM_SPEND"] = "any"
        self.processes: list[subprocess.Popen[bytes]] = []
        (directory / "bin").mkdir()
        (directory / "work").mkdir()

    def script(self, name: str, text: str) -> str:
        """Write an executable script for the tests' interpreter, into a directory of scripts only."""
        path = self.directory / "bin" / name
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
        return str(path)

    def warm(self, *words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        """Run a command through the client."""
        return self._run([UNSNARL, "warm", "run", "--", *words], options)

    def served(self, *words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        """Run a command through the client, which fails if no worker takes it.

        Client and worker wait for each other for some seconds, and a busy machine may take longer. Then nothing has
        run, and the command is started again. A refusal arrives immediately, and is final.
        """
        ends_s = time.monotonic() + WATCHDOG_S
        while True:
            begun_s = time.monotonic()
            outcome = self._run([UNSNARL, "warm", "run", "--require", "--", *words], options)
            ended_s = time.monotonic()
            if outcome.returncode != NOT_WARM or ended_s - begun_s < SILENCE_S or ended_s > ends_s:
                return outcome

    def plain(self, *words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        """Run the same command without the client."""
        return self._run(list(words), options)

    def start(self, *words: str, **options: object) -> None:
        """Start the server of a command, and wait for it."""
        outcome = self._run([UNSNARL, "warm", "start", "--", *words], options)
        assert outcome.returncode == 0, outcome.stderr.decode() + self.log() + self.verb("why", *words).stdout.decode()

    def verb(self, *words: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
        """Run a verb of ``unsnarl warm``."""
        return self._run([UNSNARL, "warm", *words], options)

    def servers(self) -> list[str]:
        """Return what the status says of each server."""
        return [line for line in self.verb("status").stdout.decode().splitlines() if line.startswith("server ")]

    def server_pids(self) -> list[int]:
        """Return the processes that serve, as the kernel names them."""
        return [int(line.split("pid ")[1].split()[0]) for line in self.servers()]

    def log(self) -> str:
        """Return the logs of all servers."""
        return "".join(path.read_text() for path in self.house.glob("*.log")) if self.house.exists() else ""

    def sweep(self) -> None:
        """End processes that were still starting in the background, and wait until none is left."""
        mark = os.fsencode(self.directory) + b"/"

        def is_swept() -> bool:
            pids = _mentioning(mark)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not pids

        until(is_swept)

    def _run(self, argv: list[str], options: dict[str, object]) -> "subprocess.CompletedProcess[bytes]":
        settings: dict[str, object] = {"cwd": self.directory / "work", "env": self.env, "timeout": WATCHDOG_S}
        settings |= {"capture_output": True, "stdin": subprocess.DEVNULL} | options
        if "stdout" in options or "stderr" in options:
            del settings["capture_output"]
        if "input" in options:
            del settings["stdin"]
        return subprocess.run(argv, check=False, **settings)  # type: ignore[call-overload, no-any-return]


def _mentioning(path: bytes) -> list[int]:
    """Return the processes whose command line mentions a path: clients, learners, servers, workers."""
    found: list[int] = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if path in Path("/proc", entry, "cmdline").read_bytes():
                    found.append(int(entry))
    return found


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """A rig; its servers are stopped at the end."""
    with open(UNSNARL, "rb") as file:
        if file.read(4) != b"\x7fELF":
            pytest.skip(f"{UNSNARL} is not the native executable")
    rig = Rig(tmp_path)
    yield rig
    for process in rig.processes:
        if process.poll() is None:
            process.kill()
        with process:
            process.wait(WATCHDOG_S)
    rig.verb("stop")
    rig.sweep()
