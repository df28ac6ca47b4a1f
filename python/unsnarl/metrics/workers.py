"""The figures of all processes of one ``unsnarl run --metrics`` under one endpoint.

Each process listens on an abstract Unix socket, named after the main process and itself; the main process also has the
endpoint, which asks all of them at each scrape. Samples carry the label ``pid``, so that the end of a worker makes no
counter fall. Must never: answer another user, or believe one. Imports nothing, as ``server``.
"""

import _socket
import _thread
import os
import sys

from unsnarl.metrics import exposition, figures, server

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable

ANSWER_S = 2.0
"""Seconds to wait for a process; one that is stopped, or keeps the GIL, is left out of this scrape."""

_PEER_SIZE = 12
"""``struct ucred`` of Linux: pid, uid and gid, 32 bits each."""


def start(main_pid: int, host: str, port: int) -> None:
    """Answer for this process, and for all processes if it is the main one; children of forks answer too.

    Raises:
        OSError: the address is in use.
    """
    if os.getpid() == main_pid:
        server.remember(server.Server(host, port, lambda: _all(main_pid), exposition.CONTENT_TYPE))
    listener = [_listen(main_pid)]

    def again_in_child() -> None:
        listener[0].close()
        try:
            listener[0] = _listen(main_pid)
        except (OSError, RuntimeError):
            return  # no descriptor or no thread: the child runs without figures

    os.register_at_fork(after_in_child=again_in_child)


def _name(main_pid: int) -> str:
    return f"unsnarl-metrics-{os.getuid()}-{main_pid}-"


def _listen(main_pid: int) -> "_socket.socket":
    listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    listener.bind(f"\0{_name(main_pid)}{os.getpid()}")
    listener.listen(16)
    _thread.start_new_thread(_serve, (listener,))
    return listener


def _serve(listener: "_socket.socket") -> None:
    while True:
        try:
            accept: Callable[[], tuple[int, object]] = getattr(listener, "_accept")  # noqa: B009 -- it has no type
            connection = _socket.socket(fileno=accept()[0])
            if _is_own(connection):
                connection.settimeout(ANSWER_S)
                connection.sendall(own().encode())
            connection.close()
        except OSError:
            if listener.fileno() < 0:
                return


def own() -> str:
    """Return the figures of this process, with its process id."""
    return exposition.text_of(figures.families(), pid=str(os.getpid()))


def _is_own(connection: "_socket.socket") -> bool:
    """Tell whether the other side belongs to this user."""
    peer: bytes = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, _PEER_SIZE)
    return int.from_bytes(peer[4:8], sys.byteorder) == os.getuid()


def _all(main_pid: int) -> str:
    """Return the figures of all processes of this run."""
    mark, others = f"@{_name(main_pid)}", set[str]()
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            _, found, pid = line.rstrip("\n").partition(mark)
            if found and pid.isdecimal() and int(pid) != os.getpid():
                others.add(pid)
    texts = [own(), *(_ask(f"\0{mark[1:]}{pid}") for pid in sorted(others, key=int))]
    return exposition.merged(texts)


def _ask(address: str) -> str:
    """Return the figures of another process; an empty text if it does not answer in time."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.settimeout(ANSWER_S)
        connection.connect(address)
        if not _is_own(connection):
            return ""
        parts: list[bytes] = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        return b"".join(parts).decode()
    except OSError:
        return ""
    finally:
        connection.close()
