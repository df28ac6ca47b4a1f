"""End the servers of a command, and the starts that would bring another one.

``KEY.lock`` is held without a gap from the first step of a start to the end of
the server, and handed from a server to its successor. So a key is done with
when its lock is free. Until then two processes may hold it: the one that
listens, and the one whose number is in the lock's file, which is a start. Both
are asked to end in every round, so it does not matter which of them has just
become the other, or was between two programs when it was asked first.

Invariant: as that of ``runtime_directory``.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Iterable

from . import runtime_directory

LOOK_S = 0.01
# Seconds after which a start that does not react to SIGTERM, as an import may arrange, is killed.
KILL_AFTER_S = 3.0
# Seconds after which a key that nobody gives up is reported.
GIVE_UP_AFTER_S = 10.0
# Seconds for a server without running commands to leave once its lock is free.
LEAVE_S = 1.0


class Holder:
    """A process that serves, or is on its way to: ``pid``."""

    def __init__(self, directory: str, pid: int) -> None:
        self.pid = pid
        self._directory = os.path.realpath(directory)
        self._fd = os.pidfd_open(pid)

    def holds_a_lock(self) -> bool:
        """Say whether it is still there and has a lock of the directory open."""
        return any(os.path.dirname(lock) == self._directory for lock in runtime_directory.open_locks(self.pid))

    def end(self, signum: signal.Signals) -> None:
        """Send it a signal; nobody else gets it, even if the number has been given away."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._fd, signum)

    def wait(self, deadline_s: float) -> None:
        """Wait until it has ended, or until that time of the monotonic clock."""
        with contextlib.suppress(OSError):
            select.select([self._fd], [], [], max(0.0, deadline_s - time.monotonic()))

    def close(self) -> None:
        """Give the descriptor back."""
        os.close(self._fd)


class Stop:
    """One stop: of all commands, or of those named."""

    def __init__(self, directory: str, names: Iterable[str] = ()) -> None:
        self._directory = directory
        self._names = frozenset(names)
        self._asked: dict[int, Holder] = {}

    def carry_out(self) -> list[str]:
        """End what is meant and wait for it; return a line for each that is still there."""
        begin_s = time.monotonic()
        pending = {name.removesuffix(".lock") for name in _listing(self._directory) if name.endswith(".lock")}
        while True:
            passed_s = time.monotonic() - begin_s
            signum = signal.SIGKILL if passed_s > KILL_AFTER_S else signal.SIGTERM
            pending = {key for key in pending if self._is_left(key, signum)}
            # Learning may change the key: then the same process has taken another lock.
            moved = [holder for holder in self._asked.values() if holder.holds_a_lock()]
            if not pending and not moved:
                break
            if passed_s > GIVE_UP_AFTER_S:
                held = {f"{self._directory}/{key}.lock" for key in pending}
                return sorted(held | {f"process {holder.pid}" for holder in moved})
            for holder in moved:
                holder.end(signal.SIGTERM)
            time.sleep(LOOK_S)
        self._let_leave()
        return []

    def _is_left(self, key: str, signum: signal.Signals) -> bool:
        """Ask whoever holds a key to end; False once it is free, or not meant."""
        stem = f"{self._directory}/{key}"
        if _is_free(stem + ".lock"):
            return False
        server = runtime_directory.server(stem)
        pid, command = _starter(stem)
        known = {command, server.info.get("command", "") if server else ""} - {""}
        if known and self._names and not self._names & (known | {os.path.basename(name) for name in known}):
            return False
        if server:
            self._remember(server.pid, stem)
            server.stop()
        start = self._remember(pid, stem)
        if start and start.holds_a_lock() and (server is None or server.pid != pid):
            start.end(signum)
        return True

    def _remember(self, pid: int, stem: str) -> Holder | None:
        """Take up who has this key's lock open; a number left in its file may be anybody's by now."""
        if pid and pid not in self._asked:
            try:
                holder = Holder(self._directory, pid)
            except OSError:
                return None
            if os.path.realpath(stem + ".lock") not in runtime_directory.open_locks(pid):
                holder.close()
                return None
            self._asked[pid] = holder
        return self._asked.get(pid)

    def _let_leave(self) -> None:
        deadline_s = time.monotonic() + LEAVE_S
        for holder in self._asked.values():
            holder.wait(deadline_s)
            holder.close()


def _starter(stem: str) -> tuple[int, str]:
    """Return the process that has written itself into a lock, and its command; 0 if none has."""
    try:
        with open(stem + ".lock", encoding="utf-8", errors="surrogateescape") as file:
            number, _, command = file.readline().rstrip("\n").partition("\t")
    except OSError:
        return 0, ""
    return (int(number), command) if number.isdecimal() else (0, "")


def _is_free(lock: str) -> bool:
    """Say whether nobody holds a lock; the next start then needs no pause (crates/client/src/server/start.rs)."""
    try:
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(fd, 0)
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _listing(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
