"""A spare: a forked process that waits in accept, receives one request, and refuses it or hands it to the worker.

Invariant: until the spare has read ``GO``, it has changed nothing outside of this process, except for temporary
directories, which a refusal removes. Every failure before ``GO`` is a refusal, and the client runs the plain command.
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

# Longest wait for a client in the middle of a request, as a struct timeval.
_TIMEOUT = (5).to_bytes(8, "little") + bytes(8)
_PR_SET_PDEATHSIG = 1
_FIONREAD = 0x541B  # from termios, which is not loaded for one number
# Longest wait for the server's verdict on an event, in seconds: many times its usual time, and well below a
# client's timeout.
_VERDICT_S = 1.0
# Largest request to rehearse, in bytes: a socket buffers that much without a reader.
_REHEARSED = 1 << 16
# Exit status of a spare that has refused: this plus the reason of the wire format.
REFUSED_STATUS = 100
# Exit status of a spare whose client has not sent GO: nothing has run.
UNWANTED_STATUS = 99
# Socket priority of a connection whose client has sent GO. Otherwise it is 0. The server, which holds the same
# connection, can read it; local sockets do not use it.
_COMMITTED = 1


class Taken:
    """A request that was accepted, with its connection, descriptors and peer."""

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

    def await_go(self) -> None:
        """Send ``READY`` and return when the client has sent ``GO``; end the process if it sends anything else."""
        try:
            self.conn.send(wire.REPLY.pack(wire.READY, os.getpid()), _socket.MSG_NOSIGNAL)
            word = self.conn.recv(1)
        except OSError:
            word = b""
        if word != wire.GO:
            self.inherited.imported.temporary.discard()
            os._exit(UNWANTED_STATUS)
        self.is_committed = True
        # Set before the first line of the command, which may end the process at any time.
        try:
            self.conn.setsockopt(_socket.SOL_SOCKET, _socket.SO_PRIORITY, _COMMITTED)
        except OSError:
            pass  # a kernel without it: the run is not counted
        self.conn.detach()
        del self.conn

    def decline(self, problem: BaseException) -> NoReturn:
        """Refuse a request that could not be applied. No line of the command has run."""
        trace = problem.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        where = trace.tb_frame.f_code.co_name if trace is not None else "?"
        what = str(problem) if isinstance(problem, worker.UnfitError) else f"{type(problem).__name__} in {where}"
        note(self.inherited, f"a request could not be applied: {what}")
        self.inherited.imported.temporary.discard()
        _refuse(self.conn, wire.REQUEST)


class Spare:
    """One spare."""

    def __init__(self, inherited: Inherited) -> None:
        self._inherited = inherited

    def wait(self) -> Taken:
        """Wait for a client and return its request; a refusal ends the process."""
        inherited = self._inherited
        signals.give_up(inherited.handlers)
        for connection in inherited.connections:
            os.close(connection)
        libc: Any = ctypes.CDLL(None)
        flush_c = ctypes.PyDLL(None).fflush
        prctl = libc.prctl
        prctl(_PR_SET_PDEATHSIG, int(_signal.SIGKILL))
        if os.getppid() != inherited.server_pid:
            os._exit(0)  # the server ended before prctl: its death sends no signal
        worker.rehearse(inherited)
        self._rehearse()
        pages.prepare(inherited.pages, libc)
        listener: Any = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, inherited.listener)
        try:
            fd, _ = listener._accept()
        except OSError:
            os._exit(0)  # the server has shut the socket down
        # From here on the spare must survive the server.
        prctl(_PR_SET_PDEATHSIG, 0)
        listener.detach()
        conn = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
        self._report_taken(fd)
        taken = self._receive(conn)
        taken.flush_c = flush_c
        return taken

    def _rehearse(self) -> None:
        """Receive a request of the usual size from itself, to copy the pages that :meth:`_receive` writes."""
        body = wire.sample(self._inherited.key, self._inherited.environment)
        if len(body) > _REHEARSED:
            return
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [self._inherited.doubt]))]
        ours.sendmsg([wire.HEADER.pack(wire.MAGIC, wire.VERSION, 1, len(body), 0) + body], rights)
        theirs.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, _TIMEOUT)
        unpack("3i", theirs.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12))
        self._is_in_doubt()
        for fd in _read_request(theirs)[1]:
            os.close(fd)
        ours.close()
        theirs.close()

    def _report_taken(self, fd: int) -> None:
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, self._inherited.taken)
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array("i", [fd]))]
        try:
            channel.sendmsg([os.getpid().to_bytes(8, "little")], rights)
        except OSError:
            os._exit(0)  # the server has ended: the client reads the end of file and runs plainly
        channel.detach()

    def _receive(self, conn: _socket.socket) -> Taken:
        conn.setsockopt(_socket.SOL_SOCKET, _socket.SO_RCVTIMEO, _TIMEOUT)
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
        """Return whether a loaded file may have changed: the server has found so, or gives no verdict in time.

        Most events concern other files (a package manager works in a directory of libraries). Only the server
        reads events, and it soon clears the doubt.
        """
        ends_s = time.monotonic() + _VERDICT_S
        while self._is_in_doubt():
            if self._inherited.files.have_moved() or _bytes_in(self._inherited.doubt) > 1 or time.monotonic() > ends_s:
                return True
            poll().poll(1)
        return False

    def _is_in_doubt(self) -> bool:
        # The files first: the server writes its doubt to the pipe before it reads the event.
        question = poll()
        question.register(self._inherited.doubt, POLLIN)
        return self._inherited.files.is_in_doubt() or bool(question.poll(0))


def _bytes_in(pipe: int) -> int:
    """Return how many bytes wait: one while the server judges an event, more once it has found a change."""
    return int.from_bytes(fcntl.ioctl(pipe, _FIONREAD, bytes(4)), "little")


def is_committed(fd: int) -> bool:
    """Return whether the client of a connection has sent ``GO``, and has not only checked for a server."""
    conn = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fd)
    try:
        return conn.getsockopt(_socket.SOL_SOCKET, _socket.SO_PRIORITY) == _COMMITTED
    finally:
        conn.detach()


def _refuse(conn: _socket.socket, why: int) -> NoReturn:
    try:
        conn.send(wire.REPLY.pack(wire.REFUSED, why), _socket.MSG_NOSIGNAL)
    except OSError:
        pass  # the client has ended
    # Not 0: the server writes it to the log.
    os._exit(REFUSED_STATUS + why)


def note(inherited: Inherited, words: str) -> None:
    """Append a line to the log, by its path: descriptor 2 may be the client's already."""
    path = f"{inherited.record}.log"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.write(fd, f"{inherited.command.name}: {words}\n".encode(errors="surrogateescape"))
        os.close(fd)
    except OSError:
        pass  # no room on the disk: the client still gets its refusal


def _answer_question(conn: _socket.socket) -> NoReturn:
    """Answer a client that connects only to check for a server."""
    try:
        conn.send(wire.REPLY.pack(wire.READY, os.getpid()), _socket.MSG_NOSIGNAL)
    except OSError:
        pass  # the client has ended
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
