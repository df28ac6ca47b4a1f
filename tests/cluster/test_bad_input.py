"""What a user gets wrong ends in one documented exception, within its time, and never shows a password."""

import os
import re
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cluster.conftest import url_of

if TYPE_CHECKING:
    from unsnarl.cluster import Cluster

UNSNARL = str(Path(sysconfig.get_path("scripts"), "unsnarl"))


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Return a port that takes connections and never says a word."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()[1]


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nowhere", "begins with"),
        ("zookeeper://host", "scheme"),
        ("etcd://host:port", "no port"),
        ("etcd://host?speed=9", "no such option"),
        ("redis://host/jobs", "number"),
        ("redis://host?timeout=0", "timeout is"),
        ("redis://host?namespace=", "1 to 255"),
        ("etcd://user:hunter2@host?x=1", "no such option"),
    ],
)
def test_a_url_that_makes_no_sense(url: str, words: str) -> None:
    from unsnarl import cluster

    with pytest.raises(ValueError, match=words) as caught:
        cluster.connect(url)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["etcd", "postgresql", "redis", "valkey"])
def test_no_server(scheme: str) -> None:
    from unsnarl import cluster

    begin = time.monotonic()
    with pytest.raises(cluster.StoreUnavailable, match="cannot be reached"):
        cluster.connect(f"{scheme}://me:hunter2@127.0.0.1:{free_port()}", timeout=0.5)
    assert time.monotonic() - begin < 10


@pytest.mark.parametrize("scheme", ["etcd", "postgresql", "redis"])
def test_a_server_that_says_nothing(scheme: str, silent_port: int) -> None:
    from unsnarl import cluster

    with pytest.raises(cluster.StoreUnavailable):
        cluster.connect(f"{scheme}://127.0.0.1:{silent_port}", timeout=0.5)


def test_a_wrong_password() -> None:
    from unsnarl import cluster

    url = url_of("postgres").replace("secret", "hunter2")
    with pytest.raises(cluster.StoreRefused, match="password") as caught:
        cluster.connect(url)
    assert "hunter2" not in str(caught.value)


def test_no_password_where_one_is_asked_for() -> None:
    from unsnarl import cluster

    begin = time.monotonic()
    with pytest.raises(cluster.StoreRefused, match="password missing"):
        cluster.connect(url_of("postgres").replace(":secret", ""), timeout=30)
    assert time.monotonic() - begin < 20  # it is not tried again until the time is up


def test_counts_are_whole_numbers(jobs: "Cluster") -> None:
    fraction: Any = 1.5
    for make in (lambda: jobs.semaphore("a", fraction), lambda: jobs.barrier("a", fraction)):
        with pytest.raises(TypeError):
            make()


def test_a_user_that_there_is_not() -> None:
    from unsnarl import cluster

    with pytest.raises(cluster.StoreRefused, match="refuses") as caught:
        cluster.connect(url_of("redis").replace("redis://", "redis://nobody:hunter2@"))
    assert "hunter2" not in str(caught.value)


def test_no_password_in_a_repr() -> None:
    from unsnarl import cluster

    with cluster.connect(url_of("postgres")) as jobs:
        assert "secret" not in repr(jobs)
        assert "secret" not in repr(vars(jobs))  # as a debugger, or a report of an error, shows it
        assert "127.0.0.1" in repr(jobs)


@pytest.mark.parametrize("ttl", [0, -1, 0.01, 100_000, float("nan"), float("inf")])
def test_a_ttl_that_is_none(jobs: "Cluster", ttl: float) -> None:
    with pytest.raises(ValueError, match=r"ttl is 0\.1 to 86400"):
        jobs.lock("a", ttl=ttl)
    with pytest.raises(ValueError, match=r"ttl is 0\.1 to 86400"):
        _ = jobs.barrier("a", 2, ttl=ttl)


def test_arguments_that_make_no_sense(jobs: "Cluster") -> None:
    for make in (
        lambda: jobs.lock("").acquire(),
        lambda: jobs.lock("x" * 256).acquire(),
        lambda: jobs.lock("a", progress=0),
        lambda: jobs.semaphore("a", 0),
        lambda: jobs.barrier("a", 0),
        lambda: jobs.lock("a").acquire(timeout=-1),
        lambda: jobs.lock("a").acquire(timeout=float("nan")),
        lambda: jobs.event("a").wait(timeout=float("nan")),
        lambda: jobs.lock("a", progress=float("nan")),
        lambda: jobs.semaphore("a", 2**31),
        lambda: jobs.break_("door", "a"),
    ):
        with pytest.raises(ValueError, match=r"."):
            make()


def test_an_unknown_kind_of_task_is_refused(jobs: "Cluster") -> None:
    coroutine = jobs.lock("a").async_acquire()
    with pytest.raises(RuntimeError):
        coroutine.send(None)


def command(*words: str, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([UNSNARL, "cluster", *words], check=False, capture_output=True, text=True, env=env)


def test_the_command_lists_shows_and_breaks(url: str, jobs: "Cluster", connect: Callable[[], "Cluster"]) -> None:
    assert command("list", url).stdout == "nothing is held\n"
    hold = jobs.lock("nightly/run").acquire()
    assert hold is not None
    listing = command("list", url, env=os.environ | {"COLUMNS": "200"})
    assert re.search(rf"^lock +nightly/run +{hold.fence} ", listing.stdout, re.MULTILINE), listing
    assert hold.ticket in command("show", url, "lock:nightly/run").stdout
    assert command("break", url, "nightly/run").stdout == "taken away from 1 holder\n"
    assert hold.lost.wait(30)
    again = command("break", url, "nightly/run")
    assert (again.returncode, again.stderr.splitlines()[0]) == (1, "error: nobody holds or waits for 'nightly/run'")


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        ([], 2, "nothing to do"),
        (["brek", "x"], 2, "unexpected argument"),
        (["list"], 2, "wrong arguments"),
        (["list", "http://host"], 2, "no store has the scheme"),
        (["list", "redis://127.0.0.1:1?timeout=0.3"], 1, "cannot be reached"),
    ],
)
def test_the_command_says_what_is_wrong_in_two_lines(words: list[str], status: int, says: str) -> None:
    outcome = command(*words)
    first, second = outcome.stderr.splitlines()
    assert outcome.returncode == status
    assert first.startswith("error: ")
    assert says in first
    assert second.startswith("hint: ")


def test_importing_unsnarl_loads_none_of_it() -> None:
    code = "import unsnarl, sys; sys.exit(any(name.startswith('unsnarl_cluster') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
