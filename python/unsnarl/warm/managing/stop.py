"""Ends the servers of a command, and starts in progress that would bring another server.

``KEY.lock`` is held without a gap from the first step of a start to the end of the server, and inherited by a
successor. A key is therefore free of servers once its lock is free. Until then two processes may hold the lock: the
one that listens, and the start whose number is in the lock's file. Each round signals both, so it does not matter if
one has just become the other, or was between two programs when the first signal arrived.

Invariant: as in ``runtime_directory``, only processes that the kernel confirms are signalled.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time
from collections.abc import Iterable

from .. import pidfd
from . import runtime_directory

# Seconds between two rounds.
ROUND_S = 0.01
# Seconds after which a start is killed that ignores SIGTERM, as an import may arrange.
KILL_AFTER_S = 3.0
# Seconds after which a key whose lock is still held is reported.
GIVE_UP_AFTER_S = 10.0
# Seconds to wait for the end of a server without running commands once its lock is free.
LEAVE_S = 1.0


class Holder:
    """A process that serves, or is a start: ``pid``."""

    def __init__(self, directory: str, pid: int) -> None:
        self.pid = pid
        self._directory = os.path.realpath(directory)
        self._fd = pidfd.open_of(pid)

    def holds_a_lock(self) -> bool:
        """Return whether it lives and has a lock of the directory open."""
        return any(os.path.dirname(lock) == self._directory for lock in runtime_directory.open_locks(self.pid))

    def end(self, signum: signal.Signals) -> None:
        """Send it a signal; by the descriptor, so no later process of the same number gets it."""
        with contextlib.suppress(OSError):
            pidfd.send_signal(self._fd, signum)

    def wait(self, deadline_s: float) -> None:
        """Wait until it has ended, or until a time of the monotonic clock."""
        with contextlib.suppress(OSError):
            select.select([self._fd], [], [], max(0.0, deadline_s - time.monotonic()))

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._fd)


class Stop:
    """One request to stop all commands, or the named ones."""

    def __init__(self, directory: str, names: Iterable[str] = ()) -> None:
        self._directory = directory
        self._names = frozenset(names)
        self._signalled: dict[int, Holder] = {}

    @property
    def has_found(self) -> bool:
        """Whether there was a process to end."""
        return bool(self._signalled)

    def carry_out(self) -> list[str]:
        """End servers and starts, and wait for them; return a line for each that is left."""
        begin_s = time.monotonic()
        pending = {name.removesuffix(".lock") for name in _listing(self._directory) if name.endswith(".lock")}
        while True:
            passed_s = time.monotonic() - begin_s
            signum = signal.SIGKILL if passed_s > KILL_AFTER_S else signal.SIGTERM
            pending = {key for key in pending if self._is_left(key, signum)}
            # Learning may change the key: the same process then has another lock.
            moved = [holder for holder in self._signalled.values() if holder.holds_a_lock()]
            if not pending and not moved:
                break
            if passed_s > GIVE_UP_AFTER_S:
                held = {f"{self._directory}/{key}.lock" for key in pending}
                return sorted(held | {f"process {holder.pid}" for holder in moved})
            for holder in moved:
                holder.end(signal.SIGTERM)
            time.sleep(ROUND_S)
        self._await_ends()
        return []

    def _is_left(self, key: str, signum: signal.Signals) -> bool:
        """Signal the holders of a key; return False once the key is free, or if it is of another command."""
        stem = f"{self._directory}/{key}"
        if _is_free(stem + ".lock"):
            return False
        server = runtime_directory.server(stem)
        pid, command = _starter(stem)
        known = {command, server.info.get("command", "") if server else ""} - {""}
        if known and self._names and not self._names & (known | {os.path.basename(name) for name in known}):
            return False
        if server:
            self._register(server.pid, stem)
            server.stop()
        start = self._register(pid, stem)
        if start and start.holds_a_lock() and (server is None or server.pid != pid):
            start.end(signum)
        return True

    def _register(self, pid: int, stem: str) -> Holder | None:
        """Register and return a process that has this key's lock open; its number may be another process's by now."""
        if pid and pid not in self._signalled:
            try:
                holder = Holder(self._directory, pid)
            except OSError:
                return None
            if os.path.realpath(stem + ".lock") not in runtime_directory.open_locks(pid):
                holder.close()
                return None
            self._signalled[pid] = holder
        return self._signalled.get(pid)

    def _await_ends(self) -> None:
        deadline_s = time.monotonic() + LEAVE_S
        for holder in self._signalled.values():
            holder.wait(deadline_s)
            holder.close()


def _starter(stem: str) -> tuple[int, str]:
    """Return the process and the command that are written in a lock's file; 0 if there is none."""
    try:
        with open(stem + ".lock", encoding="utf-8", errors="surrogateescape") as file:
            number, _, command = file.readline().rstrip("\n").partition("\t")
    except OSError:
        return 0, ""
    return (int(number), command) if number.isdecimal() else (0, "")


def _is_free(lock: str) -> bool:
    """Return whether a lock is free; if so, empty it: the next start needs no pause (client/src/server/start.rs)."""
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
