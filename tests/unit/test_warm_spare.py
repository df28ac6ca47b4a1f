"""What a spare makes of an event that is not judged yet: it waits for the verdict, and refuses without one."""

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


class Server:
    """What a spare knows of its server."""

    def __init__(self) -> None:
        self.doubt_in, self.doubt_out = os.pipe()
        self.files = Files(0)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    os.close(server.doubt_in)
    os.close(server.doubt_out)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait for as long as the tests have, so that none ends by the time."""
    monkeypatch.setattr(spare, "_VERDICT_S", 1e9)


def is_stale(server: Any) -> bool:
    return spare.Spare(server).is_stale()


def test_without_an_event_nothing_is_stale(server: Server) -> None:
    assert not is_stale(server)


def test_an_event_that_the_server_has_read_and_found_harmless_is_forgotten(server: Server) -> None:
    server.files = Files(3)
    assert not is_stale(server)


def test_a_verdict_is_heeded(server: Server) -> None:
    os.write(server.doubt_out, b"?!")
    assert is_stale(server)


def test_what_no_event_tells_of_needs_no_verdict(server: Server) -> None:
    server.files = Files(1 << 60, is_moved=True)
    assert is_stale(server)


def test_a_server_that_does_not_say_is_not_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "_VERDICT_S", -1.0)
    os.write(server.doubt_out, b"?")
    assert is_stale(server)
