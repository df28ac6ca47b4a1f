"""How long stores are silent, as the bench of `unsnarl.cluster` notes it."""

import threading

import pytest

from bench.cluster import answers


def test_longest_answer_of_each_store_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One store answers at once, the other only when it is let to, which is later than any answer of the first."""
    asked, may_answer = threading.Event(), threading.Event()

    def silent() -> None:
        asked.set()
        may_answer.wait(30)

    monkeypatch.setattr(answers, "PAUSE_S", 0.0)
    monkeypatch.setattr(answers, "STORES", {"quick": lambda: lambda: None, "silent": lambda: silent})
    with answers.Answers() as found:
        assert asked.wait(30)
        while not found.longest_ms["quick"]:
            pass
        may_answer.set()
    assert found.longest_ms["quick"] > 0
    assert found.longest_ms["silent"] > 0


def test_error_of_a_store_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that refuses is no store that was quick."""

    def refuse() -> None:
        raise ConnectionError("refused")

    monkeypatch.setattr(answers, "PAUSE_S", 0.0)
    monkeypatch.setattr(answers, "STORES", {"refusing": lambda: refuse})
    found = answers.Answers()
    found.__enter__()
    while not found.errors:
        pass
    with pytest.raises(ConnectionError, match="refused"):
        found.__exit__()
