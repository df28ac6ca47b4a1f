"""Figures about a running program as Prometheus text, and an endpoint for them.

    from unsnarl import metrics
    print(metrics.text())
    with metrics.serve(port=9464) as endpoint: ...

The scheduler's figures are zero until it is installed. Nothing is collected in the background,
and nothing listens before ``serve`` is called. ``unsnarl.metrics.prometheus`` has a collector for
prometheus_client, ``unsnarl.metrics.opentelemetry`` instruments of OpenTelemetry.
"""

import os

from unsnarl.metrics import exposition, figures, server
from unsnarl.metrics.exposition import CONTENT_TYPE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["CONTENT_TYPE", "Endpoint", "serve", "text"]


def text() -> str:
    """Return the figures of this process in Prometheus' text format; thread-safe."""
    return exposition.text_of(figures.families())


class Endpoint:
    """An endpoint that answers until it is closed or the program ends.

    An endpoint belongs to the process that created it. The child of a fork does not inherit it and
    may create another.
    """

    __slots__ = ("_owner", "_server")

    def __init__(self, host: str, port: int) -> None:
        """Start to answer, in a daemon thread."""
        self._owner = os.getpid()
        self._server = server.Server(host, port, text, CONTENT_TYPE)
        server.remember(self._server)

    @property
    def port(self) -> int:
        """Return the port on which the endpoint listens."""
        return self._server.port

    @property
    def url(self) -> str:
        """Return the address of the figures, for a reader on this machine where it listens on all addresses."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self._server.host, self._server.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/metrics"

    def close(self) -> None:
        """Stop listening, and wait for the answering thread to end. Closing again does nothing.

        In the child of a fork it does nothing.
        """
        if os.getpid() == self._owner:
            server.forget(self._server)
            self._server.close()

    def __enter__(self) -> "Self":
        """Return the endpoint."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: "TracebackType | None"
    ) -> None:
        """Close the endpoint."""
        self.close()


def serve(port: int = 0, *, host: str = "127.0.0.1") -> Endpoint:
    """Answer ``GET`` and ``HEAD`` of ``/metrics``, from a daemon thread.

    Args:
        port: the port, or 0 for any that is free; see ``Endpoint.port``.
        host: an address or a name of this machine. Readers are not authenticated, so only loopback is the default;
            ``0.0.0.0`` lets every machine read that can reach this one, such as the scraper of a container.

    Raises:
        ValueError: the host is empty, or the port is out of range.
        OSError: the port is in use, or the host is none of this machine's.
    """
    if not host:
        raise ValueError("an endpoint needs a host: 127.0.0.1, or 0.0.0.0 for every address of this machine")
    if not 0 <= port <= 65535:
        raise ValueError(f"a port is between 0 and 65535, not {port!r}")
    return Endpoint(host, port)
