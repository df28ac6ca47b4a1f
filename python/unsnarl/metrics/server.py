"""A small HTTP server for one page of figures, in threads that ``threading`` does not know.

It also runs in programs under ``unsnarl run --metrics``, so it imports only what is part of the interpreter.
Must never: let a reader occupy a thread for ever; answer a page of another site (the Host header is checked, since a
page of a browser could resolve its name to this address); write to stderr, which belongs to the program.
Invariant: at most ``MOST_CONNECTIONS`` readers have a thread; another one is answered 503 by the accepting thread.
"""

import _socket
import _thread
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CONNECTIONS = 32
DEADLINE_S = 10.0
"""Seconds a reader has for its request, and for each part of the answer that it reads."""
MOST_BYTES = 8192
"""The longest request."""

_REASONS = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    500: "Error",
    503: "Busy",
}


def _own_names(host: str, *, is_loopback: bool) -> set[str]:
    """Return the names in a Host header that are this server's own."""
    names = {"localhost", host.lower()}
    return names if is_loopback else names | {str(_socket.gethostname()).lower()}


class Server:
    """Answers ``GET`` and ``HEAD`` of ``/metrics`` until it is closed, in the process that made it."""

    def __init__(self, host: str, port: int, page: "Callable[[], str]", content_type: str) -> None:
        """Listen on ``host`` and ``port`` (0: any that is free).

        Raises:
            OSError: the port is in use, or the host is none of this machine's.
        """
        family, _, _, _, address = _socket.getaddrinfo(host, port, 0, _socket.SOCK_STREAM, 0, _socket.AI_PASSIVE)[0]
        self._page = page
        self._content_type = content_type
        self._listener = _socket.socket(family, _socket.SOCK_STREAM)
        try:
            self._listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            self._listener.bind(address)
            self._listener.listen(128)
        except OSError:
            self._listener.close()
            raise
        bound: tuple[str, int] = self._listener.getsockname()
        self.host: str = bound[0]
        self.port: int = bound[1]
        self._is_loopback = self.host == "::1" or self.host.startswith("127.")
        self._names = _own_names(host, is_loopback=self._is_loopback)
        self._is_closing = False
        self._connections = 0
        self._guard = _thread.allocate_lock()
        self._ended = _thread.allocate_lock()
        self._ended.acquire()
        _thread.start_new_thread(self._serve, ())

    def close(self) -> None:
        """Stop listening, and wait until the accepting thread has ended. Closing again does nothing."""
        if self._is_closing:
            return
        self._is_closing = True
        self._listener.shutdown(_socket.SHUT_RDWR)  # wakes accept
        with self._ended:
            self._listener.close()

    def leave(self) -> None:
        """Close the child's copy of the socket after a fork; the parent keeps listening."""
        self._is_closing = True
        self._listener.close()

    def _serve(self) -> None:
        try:
            while not self._is_closing:
                self._accept()
        finally:
            self._ended.release()

    def _accept(self) -> None:
        try:
            accept: Callable[[], tuple[int, object]] = getattr(self._listener, "_accept")  # noqa: B009 -- it has no type
            descriptor, _ = accept()
        except OSError:  # closing; or out of descriptors, which may come back
            time.sleep(0 if self._is_closing else 0.1)
        else:
            self._take(_socket.socket(fileno=descriptor))

    def _take(self, connection: "_socket.socket") -> None:
        with self._guard:
            is_full = self._connections >= MOST_CONNECTIONS
            self._connections += not is_full
        if not is_full:
            try:
                _thread.start_new_thread(self._converse, (connection,))
            except RuntimeError:  # no further thread can be started
                self._release()
                is_full = True
        if is_full:
            connection.settimeout(0)
            self._send(connection, *_answer(503, "too many readers\n"))

    def _release(self) -> None:
        with self._guard:
            self._connections -= 1

    def _converse(self, connection: "_socket.socket") -> None:
        try:
            connection.settimeout(DEADLINE_S)
            request = _request(connection)
            if request is not None:
                self._send(connection, *self._reply(request))
        finally:
            connection.close()
            self._release()

    def _reply(self, request: bytes) -> tuple[bytes, bytes]:
        line, *headers = request.decode("latin-1").split("\r\n")
        words = line.split(" ")
        if len(words) != 3:
            return _answer(400, "this is no HTTP\n")
        method, path, _ = words
        hosts = [
            value.strip() for name, _, value in (header.partition(":") for header in headers) if name.lower() == "host"
        ]
        if not all(self._is_own(host) for host in hosts):
            return _answer(403, "the Host header names another site\n")
        if method not in ("GET", "HEAD"):
            return _answer(405, "only GET and HEAD\n")
        if path.partition("?")[0] != "/metrics":
            head, body = _answer(404, "the figures are at /metrics\n")
        else:
            head, body = self._figures()
        return head, b"" if method == "HEAD" else body

    def _figures(self) -> tuple[bytes, bytes]:
        try:
            return _answer(200, self._page(), self._content_type)
        except Exception as error:  # noqa: BLE001 -- of a program that has replaced what the figures are read from
            return _answer(500, f"the figures cannot be read: {error!r}\n")

    def _is_own(self, host: str) -> bool:
        """Tell whether a Host header names this server: an address, or a name that no other site can have.

        Beyond loopback, names without a dot are accepted: those of services in a container network.
        """
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        name = name.strip("[]").lower()
        if name in self._names or _is_address(name):
            return True
        return not self._is_loopback and "." not in name

    def _send(self, connection: "_socket.socket", head: bytes, body: bytes) -> None:
        try:
            connection.sendall(head + body)
            connection.shutdown(_socket.SHUT_WR)
        except OSError:
            return
        finally:
            if connection.gettimeout() == 0:
                connection.close()


def _request(connection: "_socket.socket") -> bytes | None:
    """Read the head of a request; None if the reader leaves, is too slow, or sends too much."""
    until_s, request = time.monotonic() + DEADLINE_S, b""
    while b"\r\n\r\n" not in request:
        try:
            part = connection.recv(MOST_BYTES)
        except OSError:
            return None
        request += part
        if not part or len(request) > MOST_BYTES or time.monotonic() > until_s:
            return None
    return request.partition(b"\r\n\r\n")[0]


def _answer(status: int, text: str, content_type: str = "text/plain; charset=utf-8") -> tuple[bytes, bytes]:
    body = text.encode()
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {content_type}\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode(), body


def _is_address(name: str) -> bool:
    for family in (_socket.AF_INET, _socket.AF_INET6):
        try:
            _socket.inet_pton(family, name)
        except OSError:
            continue
        return True
    return False


_servers: list[Server] = []


def remember(server: Server) -> None:
    """Let the children of forks close their copies of a server's socket."""
    _servers.append(server)


def forget(server: Server) -> None:
    """Undo ``remember``."""
    if server in _servers:
        _servers.remove(server)


def _leave_to_parent() -> None:
    while _servers:
        _servers.pop().leave()


os.register_at_fork(after_in_child=_leave_to_parent)
