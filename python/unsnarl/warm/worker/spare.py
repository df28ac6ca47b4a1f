"""A forked process that waits for the next client.

Invariant: until ``GO`` has been read, nothing outside of this process has been
changed on behalf of the request, but for empty directories that are removed again
(:mod:`temporary`); whatever goes wrong before is a refusal, and the client runs the
plain command.
"""

from __future__ import annotations

import _socket
import ctypes
import fcntl
import os
import time
from _struct import unpack
from array import array
from select import POLLIN, poll

from .. import wire
from . import pages, signals, worker

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .inherited import Inherited
else:
    import _signal

# Longest silence of a client in the middle of a request, as a struct timeval.
_PATIENCE = (5).to_bytes(8, "little") + bytes(8)
_PR_SET_PDEATHSIG = 1
_FIONREAD = 0x541B  # of termios, which is not loaded for a number
# Longest wait for what the server thinks of an event: many times what it takes, and well within a client's patience.
_VERDICT_S = 1.0
# Largest request to rehearse: what a socket surely holds while nobody reads.
_REHEARSED = 1 << 16
# Exit statuses of a spare that has refused: this, plus the reason of the wire format.
REFUSED_STATUS = 100
# That of one whose client has not committed itself: nothing has run.
UNWANTED_STATUS = 99
# The priority of a connection whose client has said GO. Nothing else gives it another than 0, its
# server holds the same connection, and to a local socket it means nothing.
_COMMITTED = 1


class Taken:
    """Hold a request that was accepted, and what belongs to it."""

    flush_c: Callable[[None], object]
    """The C library's ``fflush``."""

    def __init__(
        self, inherited: Inherited, conn: _socket.socket, request: wire.Request, fds: list[int], peer: int
    ) -> None:
        self.inherited = inherited
        self.conn = conn
        self.request = request
        self.fds = fds
        self.peer = peer
        self.is_committed = False
        self.launcher: object = None

    def await_go(self) -> None:
        """Return when the client has committed itself; without that, end without a trace."""
        try:
            self.conn.send(wire.REPLY.pack(wire.READY, os.getpid()), _socket.MSG_NOSIGNAL)
            word = self.conn.recv(1)
        except OSError:
            word = b""
        if word != wire.GO:
            self.inherited.imported.temporary.discard()
            os._exit(UNWANTED_STATUS)
        self.is_committed = True
        # Before the first line of the command: it can end at any time from here.
        try:
            self.conn.setsockopt(_socket.SOL_SOCKET, _socket.SO_PRIORITY, _COMMITTED)
        except OSError:
            pass  # a kernel without it: the run is not counted
        self.conn.detach()
        del self.conn

    def decline(self, problem: BaseException) -> NoReturn:
        """Refuse after all: the request cannot be put on. Nothing of it has run."""
        trace = problem.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = trace.tb_frame.f_code.co_name if trace is not None else "?"
        what = str(problem) if isinstance(problem, worker.UnfitError) else f"{type(problem).__name__} in {where}"
        note(self.inherited, f"a request could not be put on: {what}")
        self.inherited.imported.temporary.discard()
        _refuse(self.conn, wire.REQUEST)


class Spare:
    """One waiting process."""

    def __init__(self, inherited: Inherited) -> None:
        self._inherited = inherited

    def wait(self) -> Taken:
        """Wait for a client and return its request. Ends the process if it must be refused."""
        inherited = self._inherited
        signals.give_up(inherited.handlers)
        for connection in inherited.connections:
            os.close(connection)
        libc: Any = ctypes.CDLL(None)
        flush_c = ctypes.PyDLL(None).fflush
        prctl = libc.prctl
        prctl(_PR_SET_PDEATHSIG, int(_signal.SIGKILL))
        if os.getppid() != inherited.server_pid:
            os._exit(0)  # it ended before it could take this process with it
        worker.rehearse(inherited)
        self._rehearse()
        pages.prepare(inherited.pages, libc)
        listener: Any = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, inherited.listener)
        try:
            fd, _ = listener._accept()
        except OSError:
            os._exit(0)  # the server has shut the socket down: nobody will come
        # From here on the end of the server must not be ours.
        prctl(_PR_SET_PDEATHSIG, 0)
        listener.detach()
        conn = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
        self._tell_server(fd)
        taken = self._receive(conn)
        taken.flush_c = flush_c
        return taken

    def _rehearse(self) -> None:
        """Receive a request of the usual size, as :meth:`_receive` will (see :func:`worker.rehearse`)."""
        body = wire.sample(self._inherited.key, self._inherited.environment)
        if len(body) > _REHEARSED:
            return
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [self._inherited.doubt]))]
        ours.sendmsg([wire.HEADER.pack(wire.MAGIC, wire.VERSION, 1, len(body), 0) + body], rights)
        theirs.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, _PATIENCE)
        unpack("3i", theirs.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
        self._is_in_doubt()
        for fd in _read_request(theirs)[1]:
            os.close(fd)
        ours.close()
        theirs.close()

    def _tell_server(self, fd: int) -> None:
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, self._inherited.taken)
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [fd]))]
        try:
            channel.sendmsg([os.getpid().to_bytes(8, "little")], rights)
        except OSError:
            os._exit(0)  # the server is gone: the client sees the end and runs plainly
        channel.detach()

    def _receive(self, conn: _socket.socket) -> Taken:
        conn.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, _PATIENCE)
        peer, uid, _ = unpack("3i", conn.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
        if uid != os.geteuid() or peer <= 0 or not self._is_in_session(peer):
            _refuse(conn, wire.PEER)
        if self.is_stale():
            _refuse(conn, wire.STALE)
        try:
            request, fds = _read_request(conn)
        except (ValueError, OSError) as problem:
            note(self._inherited, f"a request could not be read: {problem}")
            _refuse(conn, wire.REQUEST)
        if request.key != self._inherited.key:
            _refuse(conn, wire.KEY)
        return Taken(self._inherited, conn, request, fds, peer)

    def _is_in_session(self, peer: int) -> bool:
        if not self._inherited.is_in_session:
            return True
        try:
            return os.getsid(peer) == os.getsid(0)
        except OSError:
            return False

    def is_stale(self) -> bool:
        """Say whether what is loaded may be old: the server has found so, or does not say in time.

        Most events are about something else (a package manager at work in a directory of libraries), and the
        server, which alone reads them, says so in a moment.
        """
        ends_s = time.monotonic() + _VERDICT_S
        while self._is_in_doubt():
            if self._inherited.files.have_moved() or _bytes_in(self._inherited.doubt) > 1 or time.monotonic() > ends_s:
                return True
            poll().poll(1)
        return False

    def _is_in_doubt(self) -> bool:
        # The files first: the server says that it doubts before it reads what they have told.
        question = poll()
        question.register(self._inherited.doubt, POLLIN)
        return self._inherited.files.is_in_doubt() or bool(question.poll(0))


def _bytes_in(pipe: int) -> int:
    """Return how many bytes are to be read: one while the server doubts, more when it has found a change."""
    return int.from_bytes(fcntl.ioctl(pipe, _FIONREAD, bytes(4)), "little")


def is_committed(fd: int) -> bool:
    """Say of a connection whether its client wanted a run, and not only to know who is there."""
    conn = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
    try:
        return conn.getsockopt(_socket.SOL_SOCKET, _socket.SO_PRIORITY) == _COMMITTED
    finally:
        conn.detach()


def _refuse(conn: _socket.socket, why: int) -> NoReturn:
    try:
        conn.send(wire.REPLY.pack(wire.REFUSED, why), _socket.MSG_NOSIGNAL)
    except OSError:
        pass  # it is gone: nobody to refuse
    # Not 0: the server writes it to the log.
    os._exit(REFUSED_STATUS + why)


def note(inherited: Inherited, words: str) -> None:
    """Add a line to the log by its path: descriptor 2 may be the client's already."""
    path = f"{inherited.record}.log"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.write(fd, f"{inherited.command.name}: {words}\n".encode(errors="surrogateescape"))
        os.close(fd)
    except OSError:
        pass  # no room, or no place: the client is told all the same


def _answer_question(conn: _socket.socket) -> NoReturn:
    """Say that a request would be taken now, to who only wanted to know."""
    try:
        conn.send(wire.REPLY.pack(wire.READY, os.getpid()), _socket.MSG_NOSIGNAL)
    except OSError:
        pass  # it only wanted to know whether anybody listens
    os._exit(0)


def _read_request(conn: _socket.socket) -> tuple[wire.Request, list[int]]:
    room = _socket.CMSG_SPACE(4 * wire.MAX_FDS)
    data, rights, flags, _ = conn.recvmsg(1 << 16, room, _socket.MSG_CMSG_CLOEXEC)
    if not data:
        _answer_question(conn)
    fds = [fd for _, _, raw in rights for fd in unpack(f"{len(raw) // 4}i", raw[: len(raw) // 4 * 4])]
    if len(data) < wire.HEADER.size or flags & _socket.MSG_CTRUNC:
        raise ValueError("short header, or descriptors lost")
    fd_count, body_len = wire.decode_header(data[: wire.HEADER.size])
    body = data[wire.HEADER.size :]
    if len(body) < body_len:
        parts = [body]
        missing = body_len - len(body)
        while missing:
            part = conn.recv(min(missing, 1 << 20))
            if not part:
                raise ValueError("cut short")
            parts.append(part)
            missing -= len(part)
        body = b"".join(parts)
    request = wire.decode_request(body)
    if len(fds) != fd_count or len(request.fds) != fd_count - 1:
        raise ValueError("descriptors do not match")
    return request, fds
