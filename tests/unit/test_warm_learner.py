"""What any of the compared learning runs has examined is watched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unsnarl.warm import facts as facts_of
from unsnarl.warm.importing import values
from unsnarl.warm.managing import learner
from unsnarl.warm.managing.start import Start
from unsnarl.warm.renewals import PROCESS_ID, Renewal

NAMES = ("first", "second", "third")


@pytest.fixture
def start(tmp_path: Path) -> Start:
    mask = os.umask(0o077)
    words = ["exe", str(tmp_path), "command", "key", "", "000", "script", "/nowhere/tool", "/nowhere/python"]
    start = Start(words)
    os.umask(mask)
    return start


@pytest.mark.timeout(60)
def test_what_a_third_run_alone_examines_counts(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = iter(NAMES)

    def watch(*_: object, **__: object) -> tuple[facts_of.Facts, dict[str, str]]:
        name = next(runs)
        found = facts_of.Facts()
        found.sought, found.enumerated = ["each", f"of_{name}"], ["/each", f"/of_{name}"]
        found.variables = ["EACH", f"OF_{name}"]
        # One run takes a constant for the number of its process, so the two do not agree.
        found.renewals = [Renewal("tool", "NUMBER", PROCESS_ID)] if name == "second" else []
        return found, {}

    def nothing(*_: object) -> list[object]:
        return []

    def digest(*_: object) -> str:
        return "digest"

    monkeypatch.setattr(learner, "_watch", watch)
    monkeypatch.setattr(values, "read", nothing)
    monkeypatch.setattr(values, "differing", nothing)
    monkeypatch.setattr(values, "fingerprint", digest)
    facts = learner.learn(start)
    assert next(runs, None) is None
    assert facts.refusals == []
    assert facts.sought == sorted(["each", *(f"of_{name}" for name in NAMES)])
    assert facts.enumerated == sorted(["/each", *(f"/of_{name}" for name in NAMES)])
    assert facts.variables == sorted(["EACH", *(f"OF_{name}" for name in NAMES)])
    assert facts.renewals == []
