"""A server learns again after new modules, and less and less often while they keep appearing."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from unsnarl.warm import ledger
from unsnarl.warm.serving import successor


class Server:
    """A server as far as its successor is concerned."""

    def __init__(self, directory: Path, umask: int) -> None:
        self.origin: Any = SimpleNamespace(
            record=f"{directory}/id", directory=str(directory), umask=umask, environment={b"UNSNARL_WARM_SPEND": b"any"}
        )
        self.requests = 0

    def run(self, *, brings: str = "") -> int:
        """Let a run end that has loaded these modules."""
        with open(f"{self.origin.record}.wanted", "a") as file:
            file.write(brings)
        self.requests += 1
        no_limits: Any = None
        return successor.start_if_wanted(self.origin, no_limits, self.requests)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server whose successor only reports whether it is started in the caller's directory."""
    monkeypatch.chdir("/")
    monkeypatch.setattr(successor, "_start", lambda origin, _: 7 if os.getcwd() == origin.directory else -1)
    umask = os.umask(0o077)
    yield Server(tmp_path, umask)
    os.umask(umask)


def runs_until_learned(server: Server) -> int:
    """Return how many runs of a new server it takes, each with a module of its own."""
    server.requests = 0
    for count in range(1, 2000):
        if server.run(brings=f"module{count}\tfile\n"):
            return count
    raise AssertionError("never")


def test_what_is_known_is_not_learned_again(server: Server) -> None:
    assert server.run() == 0
    assert server.run(brings="news\tfile\n") == 7
    assert [server.run() for _ in range(5)] == [0] * 5
    assert os.getcwd() == "/"


def test_learning_gets_rarer(server: Server) -> None:
    assert [runs_until_learned(server) for _ in range(9)] == [*successor.RELEARN_AFTER, successor.RELEARN_AFTER[-1]]
    successor.forget(server.origin.record)
    assert runs_until_learned(server) == 1


def test_a_directory_that_is_gone_is_no_reason_not_to_learn(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(successor, "_start", lambda *_: 7)
    server.origin.directory = str(tmp_path / "gone")
    assert server.run(brings="news\tfile\n") == 7


def test_learning_again_waits_until_it_is_paid(tmp_path: Path) -> None:
    stem = str(tmp_path / "id")
    ledger.note(stem, "spent 1000", "plain 100")
    assert not successor.may_learn({}, stem)
    assert successor.may_learn({b"UNSNARL_WARM_SPEND": b"any"}, stem)
    ledger.note(stem, "saved 2000 25")
    assert successor.may_learn({}, stem)
    assert not successor.may_learn({b"UNSNARL_WARM_FROZEN": b"1", b"UNSNARL_WARM_SPEND": b"any"}, stem)
