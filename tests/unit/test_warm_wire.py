"""The worker's decoder against the format, and against anything."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.warm import facts, wire
from unsnarl.warm.renewals import HEX, TIME, UUID, Recipe, Renewal

STRINGS = st.lists(st.binary(max_size=30).map(lambda b: b.replace(b"\0", b"")), max_size=8)


def blob(data: bytes) -> bytes:
    """Return bytes with their length before them."""
    return struct.pack("<I", len(data)) + data


def encode(
    umask: int, ignored: int, blocked: int, fds: list[int], key: bytes, argv: list[bytes], env: list[bytes]
) -> bytes:
    """Encode a request as crates/wire does."""
    head = struct.pack("<IQQII", umask, ignored, blocked, 1, 7) + struct.pack("<Q", 64)
    numbers = struct.pack(f"<I{len(fds)}I", len(fds), *fds)
    return head + numbers + blob(key) + blob(b"".join(s + b"\0" for s in argv)) + blob(b"".join(s + b"\0" for s in env))


@given(
    st.integers(0, 0o777), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1),
    st.lists(st.integers(0, 2**32 - 1), max_size=50), st.binary(max_size=50), STRINGS, STRINGS,
)  # fmt: skip
def test_a_request_is_read_back(
    umask: int, ignored: int, blocked: int, fds: list[int], key: bytes, argv: list[bytes], env: list[bytes]
) -> None:
    body = encode(umask, ignored, blocked, fds, key, argv, env)
    request = wire.decode_request(body)
    assert (request.umask, request.ignored, request.blocked, request.fds) == (umask, ignored, blocked, fds)
    assert (request.key, request.argv, request.environ, request.limits) == (key, argv, env, [(7, 64)])
    for cut in range(0, len(body), max(1, len(body) // 7)):
        with pytest.raises(ValueError, match=r"."):
            wire.decode_request(body[:cut])


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused_or_read(body: bytes) -> None:
    try:
        request = wire.decode_request(body)
    except ValueError:
        return
    assert sum(map(len, request.argv + request.environ)) <= len(body)


@given(st.binary(max_size=24))
def test_no_header_announces_too_much(data: bytes) -> None:
    try:
        fd_count, body_len = wire.decode_header(data)
    except ValueError:
        return
    assert fd_count <= wire.MAX_FDS
    assert body_len <= wire.MAX_BODY


@given(st.text(max_size=200))
def test_arbitrary_facts_are_refused_or_read(text: str) -> None:
    try:
        facts.parse("unsnarl-facts 3\n" + text)
    except ValueError:
        return


def test_facts_are_read_back() -> None:
    written = facts.Facts()
    written.command, written.modules, written.asks_tty, written.asks_cwd = "/bin/x", ["a", "b.c"], True, True
    written.asks_umask = True
    written.files, written.origins = {"/a b": (1, 2, 3)}, {"a": "/a b.py", "b.c": "/b/c.py"}
    written.renewals = [Renewal("m", "T", TIME), Renewal("m", "ID", Recipe(HEX, 12)), Renewal("m", "U", UUID)]
    written.refusals = ["because"]
    assert vars(facts.parse(facts.dump(written))) == vars(written)
