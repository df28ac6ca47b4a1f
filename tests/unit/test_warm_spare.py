"""A spare that finds an event without a verdict waits for the verdict, and refuses if none arrives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from unsnarl.warm.worker import spare


class Files:
    """Files of which so many looks see an event."""

    def __init__(self, looks: int, *, is_moved: bool = False) -> None:
        self.looks, self.is_moved = looks, is_moved

    def is_in_doubt(self) -> bool:
        self.looks -= 1
        return self.looks >= 0

    def have_moved(self) -> bool:
        return self.is_moved


class Scene:
    """The part of its inheritance that a spare uses here."""

    def __init__(self) -> None:
        self.doubt, self.doubt_out = os.pipe()
        self.files = Files(0)


@pytest.fixture
def scene() -> Iterator[Scene]:
    scene = Scene()
    yield scene
    os.close(scene.doubt)
    os.close(scene.doubt_out)


@pytest.fixture(autouse=True)
def endless_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for as long as the tests have, so that none ends by the time."""
    monkeypatch.setattr(spare, "_VERDICT_S", 1e9)


def is_stale(scene: Any) -> bool:
    return spare.Spare(scene).is_stale()


def test_without_an_event_nothing_is_stale(scene: Scene) -> None:
    assert not is_stale(scene)


def test_an_event_that_the_server_has_read_and_found_harmless_is_forgotten(scene: Scene) -> None:
    scene.files = Files(3)
    assert not is_stale(scene)


def test_a_verdict_is_heeded(scene: Scene) -> None:
    os.write(scene.doubt_out, b"?!")
    assert is_stale(scene)


def test_what_no_event_tells_of_needs_no_verdict(scene: Scene) -> None:
    scene.files = Files(1 << 60, is_moved=True)
    assert is_stale(scene)


def test_a_server_that_does_not_say_is_not_waited_for(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "_VERDICT_S", -1.0)
    os.write(scene.doubt_out, b"?")
    assert is_stale(scene)
