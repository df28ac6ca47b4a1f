"""Each measuring program prints one line of JSON that holds the figures its tables need."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from bench.machine import ROOT
from unsnarl.demo.variant import VARIANTS


def run(program: str, *arguments: str) -> dict[str, Any]:
    """Run a program from the root of the sources and return what it printed."""
    command = [sys.executable, "-m", f"bench.gil.{program}", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UNSNARL")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["bench"] == program
    return found


@pytest.mark.needs_gil
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_echo(protocol: str, variant: str) -> None:
    words = ("--protocol", protocol, "-k", "1", "--seconds", "1", "--warmup", "0.05", "--variant", variant)
    found = run("echo", *words)
    figures = found["figures"]
    assert 0 < figures["p50_us"] <= figures["p99_us"] <= figures["max_us"]
    assert figures["requests_per_s"] > 0
    assert len(figures["work_each_per_s"]) == 1
    assert (found["gil"] is not None) == (variant == "unsnarl")


def test_echo_at_a_given_rate() -> None:
    figures = run("echo", "-k", "0", "--rate", "500", "--seconds", "2", "--warmup", "0.5")["figures"]
    # Some answers may be to requests of the warm-up.
    assert 0 < figures["requests_per_s"] <= figures["sent_per_s"] * (1 + 0.5 / 2)
    assert figures["sent_per_s"] < 700


def test_cpu() -> None:
    figures = run("cpu", "-k", "2", "--seconds", "0.2", "--warmup", "0.05")["figures"]
    assert figures["work_per_s"] > 0
    assert 0.5 <= figures["jain"] <= 1


@pytest.mark.parametrize("name", ["start", "mutex", "wakeup"])
def test_squares(name: str) -> None:
    assert run("squares", "--program", name, "-n", "10")["figures"]["elapsed_s"] > 0


@pytest.mark.parametrize("abuse", ["sleep", "lock"])
def test_starvation(abuse: str) -> None:
    figures = run("starvation", "--abuse", abuse, "--abusers", "5", "--seconds", "0.2")["figures"]
    assert figures["hog_worst_ms"] > 0
    assert figures["abuser_fewest_steps"] >= 0
    assert figures["bound_ms"] == pytest.approx(150)


def test_overhead() -> None:
    assert run("overhead", "--measure", "program", "--rounds", "1")["figures"]["elapsed_s"] > 0
    figures = run("overhead", "--measure", "release")["figures"]
    assert figures["releasing_ns"] > 0


def test_web_with_the_demonstrations_own_load() -> None:
    figures = run("web", "--load", "own", "-c", "2", "-k", "1", "--seconds", "1")["figures"]
    assert figures["requests_per_s"] > 0
    assert figures["work_per_s"] > 0


@pytest.mark.needs_gil
def test_options_reach_the_installation() -> None:
    found = run("cpu", "-k", "1", "--seconds", "0.1", "--variant", "unsnarl", "--options", '{"kernel_hints": false}')
    assert found["options"] == {"kernel_hints": False}
