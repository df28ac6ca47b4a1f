"""The start of a server: what is kept of earlier facts where a command is learned again."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from unsnarl.warm import facts as facts_of
from unsnarl.warm.managing import begin

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_is_no_longer_read_too_early_is_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server would end for each run that changes it, and the command be learned again."""
    stem = str(tmp_path / "command")
    known, fresh = facts_of.Facts(), facts_of.Facts()
    known.late, known.variables, known.verified = ["OF_A_LEFT_MODULE", "OF_BOTH"], ["ELSEWHERE"], ["somewhere"]
    fresh.late, fresh.variables = ["OF_BOTH"], ["HERE"]
    start: Any = types.SimpleNamespace(stem=stem, environment={}, learning=-1)
    keys: list[object] = []
    monkeypatch.setattr(begin, "_learned", lambda *_, **__: fresh)
    monkeypatch.setattr(begin, "_compute_key", keys.append)
    begin._learn_again(start, known, f"{stem}.news")
    stored = facts_of.load(f"{stem}.facts")
    assert stored is not None
    assert (stored.late, stored.variables) == (["OF_BOTH"], ["ELSEWHERE", "HERE"])
    # Its circumstances are watched again before a server starts there, and add what is read there.
    assert stored.verified == []
    assert keys == [start]
