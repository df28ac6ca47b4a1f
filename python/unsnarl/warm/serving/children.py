"""The processes a server has forked: spares that wait for a client, workers that have one, and the successor.

| state of a child | how it is left |
|---|---|
| spare | it has accepted: "taken" arrives, with the client's connection, and it is a worker; or it dies |
| worker | it dies or stops: its client is notified; or its client hangs up: it is killed |
| ending: killed, its client already forgotten | it is reaped |
| successor | it is reaped |

Invariant: a death is only reported after all "taken" messages that were sent before it have been read, so the
client of a worker is always known. This file forks and reaps; the server decides whether it continues.
"""

from __future__ import annotations

import _socket
import os
from select import POLLHUP

from .. import wire
from ..worker.spare import REFUSED_STATUS, UNWANTED_STATUS, is_committed
from .descriptors import raised

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal

    from .log import Log
else:
    import _signal

# Spares while no worker runs: one to be taken, and one for a call at the same time.
SPARES = 2


class Children:
    """All children of one server; ``taken`` is the descriptor on which a spare reports that it has accepted."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.spares, self._ending = set[int](), set[int]()
        # The connection to the client of each worker.
        self.workers: dict[int, int] = {}
        self.successor = 0
        self.is_short = False
        """Whether the last fork has failed."""
        self.lost = 0
        """Spares that have died in a row without a client."""
        self._ended: list[tuple[int, bool]] = []
        self._cpus = os.cpu_count() or 1
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        self.taken_in = raised(ours.detach())
        self.taken = raised(theirs.detach())

    def fork_spares(self) -> bool:
        """Fork the spares that are missing. Returns True in each of them."""
        while len(self.spares) < self._wanted_spares():
            try:
                pid = os.fork()
            except OSError as problem:
                if not self.is_short:
                    self._log.write(f"no spare, {problem.strerror}")
                self.is_short = True
                return False  # clients that arrive meanwhile run plainly; the server tries again soon
            self.is_short = False
            if pid == 0:
                return True
            self.spares.add(pid)
        return False

    def _wanted_spares(self) -> int:
        if len(self.workers) + len(self._ending) == 1:
            # The next spare is forked when this worker has been reaped. An earlier fork, and the copying of pages
            # in the new spare, would take processor time from the worker and its client.
            return 1
        return min(SPARES + len(self.workers), max(SPARES, self._cpus))

    def note_taken(self) -> None:
        """Read which spares have accepted, with their clients' connections."""
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, self.taken_in)
        try:
            while True:
                data, rights, _, _ = channel.recvmsg(8, _socket.CMSG_SPACE(4), _socket.MSG_DONTWAIT)
                pid = int.from_bytes(data, "little")
                connection = int.from_bytes(rights[0][2][:4], "little") if rights else -1
                self.spares.discard(pid)
                self.lost = 0
                if connection >= 0:
                    self.workers[pid] = raised(connection)
        except BlockingIOError:
            return
        finally:
            channel.detach()

    def reap(self) -> None:
        """Wait for every child that has died or stopped, and notify its client."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if os.WIFSTOPPED(status):
                self._send(pid, wire.STOPPED, os.WSTOPSIG(status))
                continue
            if pid in self.spares:
                self.note_taken()  # one that was taken has reported it before it died
            self._report_end(pid, status)
            self._forget(pid)
            self.lost += pid in self.spares
            self.spares.discard(pid)
            self._ending.discard(pid)
            if pid == self.successor:
                self.successor = 0

    def end_abandoned(self, events: dict[int, int]) -> None:
        """Kill the workers whose clients have hung up: they were killed, or have all they wanted to know."""
        for pid, connection in list(self.workers.items()):
            if events.get(connection, 0) & POLLHUP:
                try:
                    os.kill(pid, _signal.SIGKILL)
                except ProcessLookupError:
                    pass
                self._ending.add(pid)
                self._forget(pid)

    def pop_ended(self) -> list[tuple[int, bool]]:
        """Return the workers that have ended since the last call, and whether each has run its command."""
        ended, self._ended = self._ended, []
        return ended

    def running(self) -> int:
        """Return how many workers run a command."""
        return sum(map(is_committed, self.workers.values()))

    def _report_end(self, pid: int, status: int) -> None:
        is_refusal = not self._is_committed(pid)
        code = os.waitstatus_to_exitcode(status)
        if code == UNWANTED_STATUS and is_refusal:
            self._send(pid, wire.REFUSED, wire.REQUEST)
        else:
            self._send(pid, wire.ENDED, status)
        if code >= REFUSED_STATUS and pid in self.workers and is_refusal:
            self._log.write(f"worker {pid} ended with {code}")

    def _is_committed(self, pid: int) -> bool:
        return pid in self.workers and is_committed(self.workers[pid])

    def _send(self, pid: int, kind: int, value: int) -> None:
        connection = self.workers.get(pid, -1)
        if connection < 0:
            return
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, connection)
        try:
            channel.send(wire.REPLY.pack(kind, value), _socket.MSG_NOSIGNAL | _socket.MSG_DONTWAIT)
        except OSError:
            pass  # the worker has sent its status itself, and the client has ended
        finally:
            channel.detach()

    def _forget(self, pid: int) -> None:
        connection = self.workers.pop(pid, -1)
        if connection >= 0:
            self._ended.append((pid, is_committed(connection)))
            os.close(connection)
