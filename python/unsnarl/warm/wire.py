"""Decoder of requests and encoder of replies: the worker's side of the wire format that crates/wire describes.

Invariant: :func:`decode_request` allocates at most a small multiple of its input's length, and raises ValueError
for everything but exactly one request.
"""

from __future__ import annotations

import _struct
from _struct import Struct

# The stubs of type checkers lack it.
_struct_error: type[Exception] = vars(_struct)["error"]

HEADER = Struct("<4sHHII")
REPLY = Struct("<Ii")
MAGIC = b"UNSW"
VERSION = 1
MAX_BODY = 8 << 20
MAX_FDS = 253
GO = b"G"

READY, REFUSED, STOPPED, LEAVING, ENDED = 1, 2, 3, 4, 5
PEER, KEY, STALE, REQUEST = 0, 1, 2, 3

_FIXED = Struct("<IQQI")
_LIMIT = Struct("<IQ")
_COUNT = Struct("<I")
_MAX_LIMITS = 32


class Request:
    """The circumstances of one run, as a client hands them over; see crates/wire/src/request.rs."""

    __slots__ = ("argv", "blocked", "environ", "fds", "ignored", "key", "limits", "umask")

    umask: int
    ignored: int
    blocked: int
    limits: list[tuple[int, int]]
    fds: list[int]
    key: bytes
    argv: list[bytes]
    environ: list[bytes]

    @classmethod
    def empty(cls) -> Request:
        """Return a request without arguments, descriptors, environment or limits."""
        return _decode(bytes(_FIXED.size + 4 * _COUNT.size))


def sample(key: bytes, environ: dict[bytes, bytes]) -> bytes:
    """Return the body of a request that has only a key and an environment."""
    entries = b"".join([name + b"=" + value + b"\0" for name, value in environ.items()])
    blobs = b"".join([_COUNT.pack(len(blob)) + blob for blob in (key, b"", entries)])
    return bytes(_FIXED.size) + _COUNT.pack(0) + blobs


def decode_header(data: bytes) -> tuple[int, int]:
    """Return the number of descriptors and the length of the body in bytes.

    Raises ValueError for foreign, newer or oversized messages.
    """
    if len(data) != HEADER.size:
        raise ValueError("short header")
    magic, version, fd_count, body_len, _ = HEADER.unpack(data)
    if magic != MAGIC or version != VERSION or body_len > MAX_BODY or fd_count > MAX_FDS:
        raise ValueError("not a header of this version")
    return fd_count, body_len


def decode_request(body: bytes) -> Request:
    """Decode a whole body. Raises ValueError unless it is exactly one request."""
    try:
        return _decode(body)
    except _struct_error as problem:
        raise ValueError(str(problem)) from None


def _decode(body: bytes) -> Request:
    request = Request()
    request.umask, request.ignored, request.blocked, limits = _FIXED.unpack_from(body)
    at = _FIXED.size
    if limits > _MAX_LIMITS:
        raise ValueError("too many limits")
    request.limits = [_LIMIT.unpack_from(body, at + i * _LIMIT.size) for i in range(limits)]
    at += limits * _LIMIT.size
    (fds,) = _COUNT.unpack_from(body, at)
    if fds > MAX_FDS:
        raise ValueError("too many descriptors")
    at += _COUNT.size
    request.fds = list(Struct(f"<{fds}I").unpack_from(body, at))
    at += fds * _COUNT.size
    request.key, at = _blob(body, at)
    argv, at = _blob(body, at)
    environ, at = _blob(body, at)
    if at != len(body):
        raise ValueError("bytes left over")
    request.argv, request.environ = _strings(argv), _strings(environ)
    return request


def _blob(body: bytes, at: int) -> tuple[bytes, int]:
    (length,) = _COUNT.unpack_from(body, at)
    start = at + _COUNT.size
    end = start + length
    if end > len(body):
        raise ValueError("cut short")
    return body[start:end], end


def _strings(blob: bytes) -> list[bytes]:
    if not blob:
        return []
    if blob[-1]:
        raise ValueError("string without an end")
    return blob[:-1].split(b"\0")
