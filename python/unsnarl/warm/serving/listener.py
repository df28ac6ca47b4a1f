"""The listening socket of one key, and the start lock, which excludes any other server of the key.

The socket is bound to a temporary name and renamed over the key's, so a client finds either the predecessor or
this server, never neither. Spares accept by themselves; the server never does.

Invariant: the lock is held for as long as the socket is open. Only a socket of this server's own is removed.
"""

from __future__ import annotations

import _socket
import os

from .. import facts
from .descriptors import raised

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from .origin import Origin

# Longest queue of clients that no spare has accepted yet; the kernel may bound it lower.
BACKLOG = 512


class Listener:
    """A socket that listens from the start; ``fd`` is its descriptor."""

    def __init__(self, origin: Origin) -> None:
        self._path = f"{origin.stem}.sock"
        self._lock = origin.lock
        unfinished = f"{origin.stem}.{os.getpid()}.tmp"
        listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        # By the descriptor of the directory: an address holds 107 bytes only.
        directory = os.open(origin.runtime_directory, os.O_PATH | os.O_DIRECTORY)
        listener.bind(f"/proc/self/fd/{directory}/{os.path.basename(unfinished)}")
        os.close(directory)
        listener.listen(BACKLOG)
        os.rename(unfinished, self._path)
        self._inode = os.stat(self._path).st_ino
        # This start has brought a server: the next one needs no pause (crates/client/src/server/start.rs).
        os.ftruncate(self._lock, 0)
        self.fd = raised(listener.detach())

    def is_current(self) -> bool:
        """Return whether clients still connect here: no successor has renamed its socket over this one."""
        return facts.stamp_of(self._path)[2] == self._inode

    def close(self) -> None:
        """Remove the socket, wake the spares that wait in accept, and release the lock.

        The spares then end; one that has just accepted continues. A signal could hit it in the middle of a command.
        """
        if self.is_current():
            os.unlink(self._path)
        listener = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, self.fd)
        listener.shutdown(_socket.SHUT_RDWR)
        listener.close()
        os.close(self._lock)
