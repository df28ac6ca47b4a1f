"""``unsnarl run --metrics`` serves the figures of all processes of an unchanged program at one address."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

from prometheus_client import parser

from tests.integration.trace_programs import needs_hooks

if TYPE_CHECKING:
    from tests.conftest import Programs

FORKING = """
import sys

before = sorted(name for name in sys.modules if "." not in name)

import json, os, urllib.request

read, gate = os.pipe()
children = []
for _ in range(2):
    ready, say = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(gate)
        os.write(say, b"x")
        os.read(read, 1)
        os._exit(0)
    os.read(ready, 1)
    children.append(pid)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
with opener.open(f"http://127.0.0.1:{sys.argv[1]}/metrics", timeout=60) as answer:
    text = answer.read().decode()
os.close(gate)
for pid in children:
    os.waitpid(pid, 0)
print(json.dumps({"pids": [os.getpid(), *children], "text": text, "modules": before}))
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_a_master_and_its_forked_workers_answer_at_one_address(programs: Programs) -> None:
    needs_hooks()
    programs.write("app.py", FORKING)
    port = free_port()
    outcome = programs.unsnarl("run", f"--metrics={port}", "app.py", str(port))
    assert outcome.status == 0, outcome.complaint
    document = json.loads(outcome.stdout)
    families = {family.name: family for family in parser.text_string_to_metric_families(document["text"])}
    installed = {sample.labels["pid"]: sample.value for sample in families["unsnarl_scheduler_installed"].samples}
    assert installed == {str(pid): 1 for pid in document["pids"]}
    assert families["unsnarl_gil_wait_seconds"].type == "histogram"
    assert not {"socket", "struct", "http", "typing"} & set(document["modules"])


def test_an_address_in_use_does_not_stop_the_program(programs: Programs) -> None:
    needs_hooks()
    programs.write("app.py", "print('runs')")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        outcome = programs.unsnarl("run", f"--metrics={address}", "app.py")
    assert (outcome.status, outcome.stdout) == (0, b"runs\n")
    assert f"without an endpoint for its figures at {address}" in outcome.complaint


def test_an_address_is_a_port_or_a_host_and_a_port(programs: Programs) -> None:
    programs.write("app.py", "")
    for address in ("", "x", "localhost", "localhost:99999", "::1:80", ":80"):
        outcome = programs.unsnarl("run", f"--metrics={address}", "app.py")
        assert outcome.status == 2
        assert "--metrics takes a port" in outcome.complaint
