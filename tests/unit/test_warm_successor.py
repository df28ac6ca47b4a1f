"""When a server learns again: rarer and rarer while runs bring ever new modules."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from unsnarl.warm.serving import successor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unsnarl.warm.serving.server import Server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Server]":
    """What a server is to its successor; starting one only tells so."""
    monkeypatch.chdir("/")
    monkeypatch.setattr(successor, "_start", lambda server: 7 if os.getcwd() == server.directory else -1)
    umask = os.umask(0o077)
    place = SimpleNamespace(house=str(tmp_path), command_id="id", directory=str(tmp_path), umask=umask, requests=0)
    yield cast("Server", place)
    os.umask(umask)


def run(server: "Server", *, brings: str = "") -> int:
    """Let a run end that has loaded these modules."""
    with open(f"{server.house}/{server.command_id}.wanted", "a") as file:
        file.write(brings)
    server.requests += 1
    return successor.start_if_wanted(server)


def runs_until_learned(server: "Server") -> int:
    """Return how many runs of a new server it takes, each with a module of its own."""
    server.requests = 0
    for count in range(1, 2000):
        if run(server, brings=f"module{count}\tfile\n"):
            return count
    raise AssertionError("never")


def test_what_is_known_is_not_learned_again(server: "Server") -> None:
    assert run(server) == 0
    assert run(server, brings="news\tfile\n") == 7
    assert [run(server) for _ in range(5)] == [0] * 5
    assert os.getcwd() == "/"


def test_learning_gets_rarer(server: "Server") -> None:
    assert [runs_until_learned(server) for _ in range(9)] == [*successor.RELEARN_AFTER, successor.RELEARN_AFTER[-1]]
    successor.forget(f"{server.house}/{server.command_id}")
    assert runs_until_learned(server) == 1


def test_a_directory_that_is_gone_is_no_reason_not_to_learn(
    server: "Server", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(successor, "_start", lambda _: 7)
    server.directory = str(tmp_path / "gone")
    assert run(server, brings="news\tfile\n") == 7
