"""A server learns again after new modules, and less and less often while they keep appearing."""

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from unsnarl.warm import ledger
from unsnarl.warm.facts import Facts
from unsnarl.warm.managing import learner
from unsnarl.warm.serving import import_phase, successor

# Modules that a server has imported ahead.
MODULES = 20


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
        return successor.start_if_wanted(self.origin, no_limits, self.requests, MODULES)


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


def may_learn(stem: str, spend: bytes | None = None, frozen: bytes | None = None) -> bool:
    """Return the verdict of a server that was learned before any run had loaded modules of its own."""
    given = {b"UNSNARL_WARM_SPEND": spend, b"UNSNARL_WARM_FROZEN": frozen}
    environment = {name: value for name, value in given.items() if value is not None}
    return successor.may_learn(environment, stem, 0, MODULES)


@pytest.fixture
def stem(tmp_path: Path) -> str:
    """A command whose server takes 1000 ms, and 5 ms for each module; runs have imported 199 modules themselves."""
    stem = str(tmp_path / "id")
    ledger.note(stem, "spent 1000", "plain 100")
    Path(stem + ".wanted").write_text("module\t/file.py\n" * 199)
    return stem


def test_learning_again_waits_until_it_is_paid(stem: str) -> None:
    with open(stem + ".wanted", "a") as file:
        file.write("module\t/file.py\n")
    assert not may_learn(stem)
    assert may_learn(stem, spend=b"any")
    ledger.note(stem, "saved 2000 25")
    assert may_learn(stem)
    assert not may_learn(stem, spend=b"any", frozen=b"1")


@pytest.mark.parametrize(
    ("more", "is_worth"), [("", False), ("module\t/file.py\n", True), ("_compiled\t/file.so\n", True)]
)
def test_learning_again_waits_until_runs_have_spent_as_much_on_their_own_imports(
    stem: str, more: str, is_worth: bool
) -> None:
    ledger.note(stem, "saved 9000 90")
    with open(stem + ".wanted", "a") as file:
        file.write(more)
    assert may_learn(stem) == is_worth


def test_a_server_that_was_asked_for_does_not_wait_for_that(stem: str) -> None:
    ledger.note(stem, "asked 1000", "saved 9000 90")
    assert may_learn(stem)


def test_new_modules_are_not_learned_where_the_circumstances_are_new(stem: str) -> None:
    start: Any = SimpleNamespace(stem=stem)
    Path(stem + ".wanted").write_text("known\t/known.py\nnews\t/news.py\n")
    known = Facts()
    known.modules = ["known", "other"]
    assert learner.wanted_modules(start, None) == {"known": "/known.py", "news": "/news.py"}
    assert learner.wanted_modules(start, known) == {"known": "/known.py"}


def test_only_modules_before_the_last_learning_are_taken_for_considered(stem: str) -> None:
    Path(stem + ".wanted").write_text("before\t/before.py\n")
    successor.forget(stem)
    with open(stem + ".wanted", "a") as file:
        file.write("after\t/after.py\n")
    origin: Any = SimpleNamespace(record=stem)
    assert import_phase.considered(origin) == {"before"}
