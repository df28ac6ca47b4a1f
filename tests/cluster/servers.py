"""Servers that a test may stop, kill, cut off and start again: three members of etcd, a PostgreSQL, a Redis or Valkey.

The members of etcd live in network namespaces of their own where the machine allows that, so that one can be cut off;
else on loopback. Never touches a server that it has not started; what it has made is removed at the end.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import pytest

BRIDGE = f"unsnarl{os.getpid()}"
"""Of this process alone, as its namespaces: two may test at once. An interface's name has 15 bytes at most."""

NETWORK = f"10.177.{os.getpid() % 256}"
START_S = 30.0


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def program(*names: str) -> str:
    """Return the first program of these that there is, or skip the test."""
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    postgres = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{names[0]}"))
    if postgres:
        return str(postgres[-1])
    pytest.skip(f"{' or '.join(names)} is not installed")


class Server:
    """One server process that can be started again."""

    def __init__(self, address: tuple[str, int], command: list[str], *, log: Path, user: str | None = None) -> None:
        self.address = address
        self.directory = log.parent
        self.link: str | None = None
        self._command = command
        self._log = log
        self._user = user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and return once it listens."""
        user = self._user if os.geteuid() == 0 else None
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, user=user, cwd=self._log.parent
            )

    def wait(self) -> None:
        """Return once it listens."""
        limit = time.monotonic() + START_S
        while time.monotonic() < limit:
            try:
                socket.create_connection(self.address, timeout=1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return
        raise AssertionError(f"{self._command[0]} does not listen: {self._log.read_text()[-500:]}")

    def send(self, number: signal.Signals) -> None:
        """Send it, and the processes that it has started, a signal."""
        for pid in self._family():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _family(self) -> list[int]:
        """Return the process and its children: each backend of PostgreSQL is a session of its own."""
        if self._process is None:
            return []
        pid = self._process.pid
        try:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        except FileNotFoundError:
            children = ""
        return [pid, *map(int, children.split())]

    def kill(self) -> None:
        """Kill it without a warning, as the kernel does when memory runs out."""
        if self._process is not None:
            self.send(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def end(self) -> None:
        """End it in good order, and kill it if that takes too long."""
        if self._process is None:
            return
        self.send(signal.SIGCONT)
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def cut_off(self) -> None:
        """Take its network away, where it has one of its own."""
        if self.link is not None:
            ip("link", "set", self.link, "down")

    def reconnect(self) -> None:
        """Give it its network back."""
        if self.link is not None:
            ip("link", "set", self.link, "up")


def ip(*words: str) -> None:
    """Configure the network."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def can_have_namespaces() -> bool:
    """Tell whether this process may make network namespaces."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    made = subprocess.run(["ip", "netns", "add", f"{BRIDGE}-probe"], check=False, capture_output=True)
    if made.returncode == 0:
        ip("netns", "delete", f"{BRIDGE}-probe")
    return made.returncode == 0


@contextmanager
def hosts(count: int) -> Iterator[list[tuple[str, str, list[str]]]]:
    """Make hosts: an address, the name of its link or '', and the words before a command that runs there."""
    if not can_have_namespaces():
        yield [("127.0.0.1", "", []) for _ in range(count)]
        return
    names = [f"un{os.getpid()}-{number}" for number in range(count)]
    try:
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("address", "add", f"{NETWORK}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        for number, name in enumerate(names):
            ip("netns", "add", name)
            ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            ip("link", "set", name, "master", BRIDGE, "up")
            ip("-n", name, "address", "add", f"{NETWORK}.{number + 2}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield [(f"{NETWORK}.{number + 2}", name, ["ip", "netns", "exec", name]) for number, name in enumerate(names)]
    finally:
        for words in [["netns", "delete", name] for name in names] + [["link", "delete", BRIDGE]]:
            subprocess.run(["ip", *words], check=False, capture_output=True)


@contextmanager
def etcd_members(directory: Path) -> Iterator[tuple[str, list[Server]]]:
    """Run a cluster of three members; yield its URL and the members."""
    etcd = program("etcd")
    with hosts(3) as places:
        ports = [(free_port(), free_port()) for _ in places]
        peers = [f"http://{place[0]}:{port[1]}" for place, port in zip(places, ports, strict=True)]
        cluster = ",".join(f"m{number}={peer}" for number, peer in enumerate(peers))
        members = []
        for number, ((address, link, prefix), (port, _)) in enumerate(zip(places, ports, strict=True)):
            client = f"http://{address}:{port}"
            command = [
                *prefix, etcd, "--name", f"m{number}", "--data-dir", str(directory / f"m{number}"),
                "--listen-client-urls", client, "--advertise-client-urls", client,
                "--listen-peer-urls", peers[number], "--initial-advertise-peer-urls", peers[number],
                "--initial-cluster", cluster, "--initial-cluster-token", directory.name,
            ]  # fmt: skip
            member = Server((address, port), command, log=directory / f"m{number}.log")
            member.link = link or None
            members.append(member)
        url = "etcd://" + ",".join(f"{member.address[0]}:{member.address[1]}" for member in members)
        with running(members):
            yield url, members


@contextmanager
def postgres_server(prefix: Sequence[str] = ()) -> Iterator[tuple[str, list[Server]]]:
    """Run a PostgreSQL, by the words of `prefix` before its command; yield its URL and the server."""
    postgres, port = program("postgres"), free_port()
    # PostgreSQL refuses to run as root, and its user enters neither pytest's directory nor a TMPDIR of root's own.
    user = "postgres" if os.geteuid() == 0 else None
    own = Path(tempfile.mkdtemp(prefix="unsnarl-postgres-", dir="/tmp" if user else None))
    if user:
        shutil.chown(own, user)
    try:
        initdb = [program("initdb"), "-D", str(own / "data"), "-U", "postgres", "-A", "trust"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd=own)
        command = [*prefix, postgres, "-D", str(own / "data"), "-p", str(port), "-h", "127.0.0.1", "-k", str(own)]
        server = Server(("127.0.0.1", port), command, log=own / "log", user=user)
        with running([server]):
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres", [server]
    finally:
        shutil.rmtree(own, ignore_errors=True)


@contextmanager
def redis_server(directory: Path) -> Iterator[tuple[str, list[Server]]]:
    """Run a Redis or Valkey that keeps what it is told; yield its URL and the server."""
    port = free_port()
    command = [program("valkey-server", "redis-server"), "--bind", "127.0.0.1", "--port", str(port), "--dir"]
    command += [str(directory), "--save", "", "--appendonly", "yes"]
    server = Server(("127.0.0.1", port), command, log=directory / "redis.log")
    with running([server]):
        yield f"redis://127.0.0.1:{port}", [server]


def command(port: int, *words: str) -> bytes:
    """Send one command to a Redis, and return what it answers."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall((" ".join(words) + "\r\n").encode())
        return connection.recv(4096)


@contextmanager
def replica_of(primary: Server, directory: Path) -> Iterator[None]:
    """Run a replica of a Redis or Valkey for a block, which begins once it is connected."""
    own, port = directory / "replica", free_port()
    own.mkdir()
    words = [program("valkey-server", "redis-server"), "--port", str(port), "--dir", str(own), "--save", ""]
    words += ["--replicaof", "127.0.0.1", str(primary.address[1])]
    with running([Server(("127.0.0.1", port), words, log=own / "log")]):
        while b"master_link_status:up" not in command(port, "INFO", "replication"):
            pass
        yield


@contextmanager
def running(servers: list[Server]) -> Iterator[None]:
    """Run servers for a block."""
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        yield
    finally:
        for server in servers:
            server.end()


def servers_of(store: str, directory: Path) -> AbstractContextManager[tuple[str, list[Server]]]:
    """Run the servers of a store."""
    if store == "postgres":
        return postgres_server()
    return etcd_members(directory) if store == "etcd" else redis_server(directory)
