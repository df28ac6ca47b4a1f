"""The figures are in Prometheus' text format, and served to whoever the caller lets read."""

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest

# As the interpreter for musl that scripts/builds makes.
pytest.importorskip("_ssl", reason="prometheus_client imports ssl, which this interpreter was built without")

import prometheus_client
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import parser

from unsnarl import metrics
from unsnarl.metrics import exposition, figures, server
from unsnarl.metrics.opentelemetry import instrument
from unsnarl.metrics.prometheus import Collector

# Without a proxy that the environment may name.
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
SAMPLE = re.compile(r'^[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+$')
FAMILY_OF = re.compile(r"(_bucket|_sum|_count)$")


def test_every_line_is_a_comment_or_a_sample() -> None:
    lines = metrics.text().splitlines()
    for line in lines:
        assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE.match(line), line
    named = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    sampled = {FAMILY_OF.sub("", re.split(r"[ {]", line)[0]) for line in lines if not line.startswith("#")}
    assert set(named) == sampled
    assert len(set(named)) == len(named)


def test_prometheus_reads_counters_and_histograms() -> None:
    families = {family.name: family for family in parser.text_string_to_metric_families(metrics.text())}
    assert families["unsnarl_gil_hand_overs"].type == "counter"
    waits = families["unsnarl_gil_wait_seconds"]
    assert waits.type == "histogram"
    for name in ("handed", "io", "yielded", "batch"):
        mine = [sample for sample in waits.samples if sample.labels["class"] == name]
        buckets = [(float(s.labels["le"]), s.value) for s in mine if s.name.endswith("_bucket")]
        assert buckets == sorted(buckets)
        assert [count for _, count in buckets] == sorted(count for _, count in buckets)
        (count,) = (sample.value for sample in mine if sample.name.endswith("_count"))
        assert buckets[-1] == (float("inf"), count)
    assert not any("quantile" in sample.labels for family in families.values() for sample in family.samples)


def test_promtool_finds_nothing_to_criticise() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: the package prometheus of Debian has it")
    text = exposition.merged([exposition.text_of(figures.families(), pid=pid) for pid in ("1", "2")])
    made = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=120, check=False
    )
    assert (made.returncode, made.stdout + made.stderr) == (0, "")


def test_texts_of_several_processes_make_one() -> None:
    text = exposition.merged([exposition.text_of(figures.families(), pid=pid) for pid in ("1", "2")])
    families = list(parser.text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    assert all({sample.labels["pid"] for sample in family.samples} == {"1", "2"} for family in families)


def test_labels_are_escaped() -> None:
    family = figures.Family("a", figures.GAUGE, "A.", [figures.Sample("", 1, b='"\\\n')])
    (read,) = parser.text_string_to_metric_families(exposition.text_of([family]))
    assert read.samples[0].labels == {"b": '"\\\n'}


def test_prometheus_client_collects() -> None:
    registry = prometheus_client.CollectorRegistry()
    registry.register(Collector())
    text = prometheus_client.generate_latest(registry).decode()
    assert {line for line in metrics.text().splitlines() if line.startswith("# TYPE")} <= set(text.splitlines())


def test_opentelemetry_observes() -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    instrument(provider.get_meter("test"))
    data = reader.get_metrics_data()
    provider.shutdown()
    assert data is not None
    names = {metric.name for of in data.resource_metrics for scope in of.scope_metrics for metric in scope.metrics}
    assert {"unsnarl.gil.wait.count", "unsnarl.gil.wait.seconds", "unsnarl.gil.hand_overs", "unsnarl.threads"} <= names


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
        head = urllib.request.Request(endpoint.url, method="HEAD")
        with DIRECTLY.open(head, timeout=30) as answer:
            assert (answer.status, answer.read()) == (200, b"")
            assert int(answer.headers["Content-Length"]) > 0
    assert threading.active_count() == before


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1", 200), ("localhost:9", 200), ("[::1]:80", 200), ("evil.example", 403), ("app", 403)],
)
def test_a_page_of_another_site_reads_nothing(host: str, status: int) -> None:
    with metrics.serve() as endpoint:
        request = urllib.request.Request(endpoint.url, headers={"Host": host})
        assert status_of(request) == status


@pytest.mark.parametrize(("host", "status"), [("app:9464", 200), ("10.0.0.7", 200), ("evil.example", 403)])
def test_beyond_loopback_services_may_read(host: str, status: int) -> None:
    with metrics.serve(host="0.0.0.0") as endpoint:
        request = urllib.request.Request(endpoint.url, headers={"Host": host})
        assert status_of(request) == status


def status_of(request: urllib.request.Request) -> int:
    try:
        with DIRECTLY.open(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return refusal.code


def test_a_request_is_get_or_head_and_bounded() -> None:
    with metrics.serve() as endpoint:
        assert status_of(urllib.request.Request(endpoint.url, data=b"x", method="POST")) == 405
        for request in (b"nonsense\r\n\r\n", b"x" * 10_000):
            with socket.create_connection(("127.0.0.1", endpoint.port), timeout=30) as connection:
                connection.sendall(request)
                connection.settimeout(30)
                with contextlib.suppress(ConnectionError):
                    assert connection.recv(100) in (b"", connection.recv(0)) or request.startswith(b"nonsense")


def test_readers_are_bounded() -> None:
    with metrics.serve() as endpoint, contextlib.ExitStack() as stack:
        for _ in range(server.MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", endpoint.port), timeout=30))
        assert status_of(urllib.request.Request(endpoint.url)) in (200, 503)


def test_an_endpoint_needs_a_host() -> None:
    with pytest.raises(ValueError, match="host"):
        metrics.serve(host="")


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


def test_many_readers_at_once_and_one_that_says_nothing() -> None:
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
    assert len(answers) == 20
    assert all(answer.endswith(b"\n") and b"unsnarl_threads " in answer for answer in answers)
