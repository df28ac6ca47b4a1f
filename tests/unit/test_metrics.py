"""The figures are in Prometheus' text format, and served on loopback only."""

import re
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

from unsnarl import metrics

# Without a proxy that the environment may name.
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
SAMPLE = re.compile(r'^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+$')


def test_every_line_is_a_comment_or_a_sample() -> None:
    lines = metrics.text().splitlines()
    for line in lines:
        assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE.match(line), line
    named = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    sampled = {re.split(r"[ {]", line)[0] for line in lines if not line.startswith("#")}
    assert named == sampled


def test_the_endpoint_answers_and_leaves() -> None:
    before = threading.active_count()
    with metrics.serve() as endpoint:
        with DIRECTLY.open(endpoint.url, timeout=30) as answer:
            assert answer.headers["Content-Type"] == metrics.CONTENT_TYPE
            assert b"unsnarl_gil_hand_overs_total" in answer.read()
        with pytest.raises(urllib.error.HTTPError) as refusal:
            DIRECTLY.open(f"http://127.0.0.1:{endpoint.port}/", timeout=30)
        refusal.value.close()
        assert refusal.value.code == 404
    endpoint_threads = [thread for thread in threading.enumerate() if thread.name == "unsnarl-metrics"]
    assert endpoint_threads == []
    assert threading.active_count() <= before + 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "example.org"])
def test_nobody_else_is_told(host: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        metrics.serve(host=host)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_is_a_port(port: int) -> None:
    with pytest.raises(ValueError, match="port"):
        metrics.serve(port)


def test_a_port_in_use_is_an_error() -> None:
    with metrics.serve() as endpoint, pytest.raises(OSError, match="in use"):
        metrics.serve(endpoint.port)


FORKED = """
import os, signal, sys
from unsnarl import metrics

signal.alarm(100)
endpoint = metrics.serve()
gate, key = os.pipe()
child = os.fork()
if not child:
    endpoint.close()
    os.close(key)
    os.read(gate, 1)
    os._exit(7)
port = endpoint.port
endpoint.close()
again = metrics.serve(port)
print(again.port == port)
os.close(key)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_the_child_of_a_fork_neither_keeps_the_port_nor_waits_for_the_endpoint() -> None:
    made = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=120, check=False
    )
    assert made.stdout.split() == ["True", "7"], made.stderr


def test_many_readers_at_once_and_one_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    problems: list[BaseException | None] = []
    monkeypatch.setattr(metrics._Server, "handle_error", lambda *_: problems.append(sys.exception()))

    def read(url: str, answers: list[bytes]) -> None:
        with DIRECTLY.open(url, timeout=60) as answer:
            answers.append(answer.read())

    answers: list[bytes] = []
    with metrics.serve() as endpoint, socket.create_connection(("127.0.0.1", endpoint.port)):
        readers = [threading.Thread(target=read, args=(endpoint.url, answers)) for _ in range(20)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join(120)
    assert not problems
    assert len(answers) == 20
    assert all(answer.endswith(b"\n") and b"unsnarl_threads " in answer for answer in answers)
