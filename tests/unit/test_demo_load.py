"""The load reads answers however they are split, and reports a failing server in one line."""

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from unsnarl.demo import load

LOAD = Path(load.__file__)
HEAD = b"HTTP/1.1 200 OK\r\nServer: test\r\ncontent-length: 5\r\n\r\n"


def test_the_size_of_an_answer_is_head_and_body() -> None:
    assert load.answer_size(HEAD) == len(HEAD) + 5
    assert load.answer_size(HEAD + b"hello, and more") == len(HEAD) + 5


@pytest.mark.parametrize("end", range(len(HEAD)))
def test_a_head_that_is_cut_short_has_no_size_yet(end: int) -> None:
    assert load.answer_size(HEAD[:end]) is None


def test_an_answer_without_a_length_is_an_error() -> None:
    with pytest.raises(load.ServerError):
        load.answer_size(b"HTTP/1.1 200 OK\r\n\r\n")


def test_percentiles_are_in_microseconds() -> None:
    result = load.result_of([1000 * i for i in range(1, 102)], 2.0)
    assert result == load.Result(50.5, 51.0, 100.0)


@pytest.mark.parametrize("latencies_ns", [[], [5000]])
def test_too_few_answers_have_no_percentiles(latencies_ns: list[int]) -> None:
    assert load.result_of(latencies_ns, 1.0) == load.Result(len(latencies_ns), None, None)


class Scripted:
    """A server that handles each connection by a test's function, in a thread each."""

    def __init__(self, behave: Callable[[socket.socket], None]) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        self._behave = behave
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
            self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            try:
                self._behave(connection)
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def serve() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    servers: list[Scripted] = []

    def start(behave: Callable[[socket.socket], None]) -> int:
        servers.append(Scripted(behave))
        return int(servers[-1].port)

    yield start
    for server in servers:
        server.close()


def run_load(port: int, *, connections: int = 2) -> subprocess.CompletedProcess[str]:
    # Long enough for an answer on a machine under other load.
    words = (str(port), "-c", str(connections), "--seconds", "1", "--warmup", "0.01")
    command = [sys.executable, "-I", "-S", str(LOAD), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def answer_in_pieces(connection: socket.socket) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while connection.recv(4096):
        for piece in (HEAD[:20], HEAD[20:], b"hel", b"lo"):
            connection.sendall(piece)


def test_answers_that_come_in_pieces_are_counted_once(serve: Callable[..., int]) -> None:
    done = run_load(serve(answer_in_pieces))
    begin, end, result = done.stdout.splitlines()
    assert (begin, end) == ("begin", "end")
    assert json.loads(result)["requests_per_s"] > 0
    assert json.loads(result)["p50_us"] <= json.loads(result)["p99_us"]


def refuse(connection: socket.socket) -> None:
    while connection.recv(4096):
        connection.sendall(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")


def hang_up(connection: socket.socket) -> None:
    connection.recv(4096)


@pytest.mark.parametrize(("behave", "word"), [(refuse, "500 Oops"), (hang_up, "closed")])
def test_a_failing_server_is_one_line_and_status_1(
    serve: Callable[..., int], behave: Callable[[socket.socket], None], word: str
) -> None:
    done = run_load(serve(behave))
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert word in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_port_where_nobody_listens_is_one_line_and_status_1() -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        done = run_load(sock.getsockname()[1])
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
