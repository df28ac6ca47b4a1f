"""Five clients and one lock while clients and servers are killed, stopped and cut off.

UNSNARL_CLUSTER_FAULTS_S is how long that goes on for each store, in seconds (default: 20).
UNSNARL_CLUSTER_FAULTS_RESULTS names a file of JSON that each store's figures are put into, for the results page.
"""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import STORES
from tests.cluster.history import build_checker, complaints, late, linearizable, operations, read
from tests.cluster.servers import Server, servers_of

DURATION_S = float(os.environ.get("UNSNARL_CLUSTER_FAULTS_S", "20"))
CLIENTS = 5
TTL_S = 2.0
TIMEOUT_S = 10.0
PAUSE_S = 4.0
"""The longest stop of a process: twice the ttl."""

SLACK_S = PAUSE_S + 8.0
"""What may come on top of an acquisition's timeout: the process was stopped, or connected again first."""

WORKER = str(Path(__file__).parent / "worker.py")


class Resource:
    """Accepts a write if no higher fence has written before; for any number of clients."""

    def __init__(self, path: Path) -> None:
        self.accepted: list[int] = []
        self.refused: list[int] = []
        self._lock = threading.Lock()
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        # A killed client's connection may end in an error, whichever way it is used.
        with suppress(OSError), connection, connection.makefile("rb") as lines:
            for line in lines:
                connection.sendall(b"y" if self._write(int(line)) else b"n")

    def _write(self, fence: int) -> bool:
        with self._lock:
            is_accepted = not self.accepted or fence >= max(self.accepted[-1:])
            (self.accepted if is_accepted else self.refused).append(fence)
            return is_accepted

    def close(self) -> None:
        self._server.close()


class Clients:
    """The clients, and the logs of those that were killed too."""

    def __init__(self, url: str, directory: Path) -> None:
        self._command = [sys.executable, WORKER, url, str(directory / "resource"), str(TIMEOUT_S), str(TTL_S)]
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        self._count = 0

    def start(self) -> None:
        log = self._directory / f"client-{self._count}.log"
        self._count += 1
        with log.open("wb") as file, (self._directory / f"{log.name}.err").open("wb") as errors:
            self._processes.append(subprocess.Popen(self._command, stdout=file, stderr=errors))

    def kill_one(self) -> None:
        process = self._processes.pop(random.randrange(len(self._processes)))
        process.kill()
        process.wait()
        self.start()

    @contextmanager
    def one_stopped(self) -> Iterator[None]:
        process = random.choice(self._processes)
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()

    def logs(self) -> list[list[dict[str, Any]]]:
        """Return the lines of each client; a killed one's last may be cut."""
        found = []
        for log in self._directory.glob("client-*.log"):
            lines = [line for line in log.read_text().splitlines() if line.endswith("}")]
            found.append([json.loads(line) for line in lines])
        return found

    def unexpected(self) -> str:
        return "".join(log.read_text() for log in self._directory.glob("client-*.err"))


def break_something(clients: Clients, servers: list[Server]) -> str:
    """Break one thing for a while; return what it was."""
    server, pause_s = random.choice(servers), random.random() * PAUSE_S
    what = random.choice(["kill a client", "stop a client", "stop a server", "restart a server", "cut a server off"])
    if what == "kill a client":
        clients.kill_one()
    elif what == "stop a client":
        with clients.one_stopped():
            time.sleep(pause_s)
    elif what == "stop a server":
        server.send(signal.SIGSTOP)
        time.sleep(pause_s)
        server.send(signal.SIGCONT)
    elif what == "restart a server":
        server.kill()
        time.sleep(pause_s / 2)
        server.start()
    else:
        server.cut_off()
        time.sleep(pause_s)
        server.reconnect()
    return what


def make_trouble(clients: Clients, servers: list[Server], resource: Resource) -> list[str]:
    """Break things for the duration, and return what; then wait until the lock is served again."""
    faults: list[str] = []
    end = time.monotonic() + DURATION_S
    while time.monotonic() < end:
        time.sleep(random.random() * 1.5)
        faults.append(break_something(clients, servers))
    expected = len(resource.accepted) + 20
    limit = time.monotonic() + TIMEOUT_S + SLACK_S
    while len(resource.accepted) < expected:
        assert time.monotonic() < limit, f"nothing is served after {faults[-3:]}"
        time.sleep(0.1)
    return faults


def keep(store: str, figures: dict[str, Any]) -> None:
    """Put a store's figures into the file of results, where one is named."""
    name = os.environ.get("UNSNARL_CLUSTER_FAULTS_RESULTS")
    if name:
        path = Path(name)
        kept = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(kept | {store: figures}, indent=1) + "\n")


@pytest.mark.timeout(DURATION_S + 180)
@pytest.mark.parametrize("store", STORES)
def test_a_lock_survives_faults(store: str, tmp_path: Path) -> None:
    with servers_of(store, tmp_path) as (url, servers):
        resource = Resource(tmp_path / "resource")
        clients = Clients(url, tmp_path)
        try:
            for _ in range(CLIENTS):
                clients.start()
            faults = make_trouble(clients, servers, resource)
        finally:
            clients.end()
            resource.close()
    logs = clients.logs()
    calls = [call for number, log in enumerate(logs) for call in read(str(number), log)]
    history = [line for number, log in enumerate(logs) for line in operations(number, log)]
    (tmp_path / "history.json").write_text("".join(json.dumps(line) + "\n" for line in history))
    checker = build_checker(tmp_path)
    says = checker if isinstance(checker, str) else linearizable(checker, history)
    figures = {
        "seconds": DURATION_S,
        "faults": dict(Counter(faults)),
        "acquisitions": len(calls),
        "granted": sum(call.fence is not None for call in calls),
        "lost": sum("LeaseLost" in call.error for call in calls),
        "late": len(late(calls, TIMEOUT_S, SLACK_S)),
        "complaints": len(complaints(calls)),
        "accepted": len(resource.accepted),
        "refused": len(resource.refused),
        "operations": len(history),
        "porcupine": says if isinstance(says, str) else says[1].strip(),
    }
    print(store, json.dumps(figures))
    keep(store, figures)
    assert clients.unexpected() == ""
    assert complaints(calls) == []
    assert late(calls, TIMEOUT_S, SLACK_S) == []
    assert resource.accepted == sorted(resource.accepted)
    assert isinstance(says, str) or says[0] == 0, says
