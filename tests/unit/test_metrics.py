"""The figures are Prometheus' text format, and told on loopback only."""

import re
import threading
import urllib.error
import urllib.request

import pytest

from unsnarl import metrics

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
        with urllib.request.urlopen(endpoint.url, timeout=30) as answer:
            assert answer.headers["Content-Type"] == metrics.CONTENT_TYPE
            assert b"unsnarl_gil_hand_overs_total" in answer.read()
        with pytest.raises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/", timeout=30)
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
