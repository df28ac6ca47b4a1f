"""Registry of live servers: finds, counts and stops them by the files of the runtime directory.

| file | content |
|---|---|
| ``KEY.sock`` | the socket at which a server listens |
| ``KEY.lock`` | locked from the first step of a start to the end of its server; number and command of the start |
| ``KEY.info`` | the server's state, in tab-separated ``name value`` lines |

A server is found without a connection if possible: a connection takes one of its spares.

Invariant: a process is signalled only after the kernel has confirmed one of two facts: that the process has the lock
of its key open or, by the credentials of a connection, that it listens at the key's socket.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import stat
import struct
from collections.abc import Iterator

from .. import pidfd

# Most servers of one user, for all commands together; the one that is idle for longest is stopped first.
MAX_SERVERS = 24
# Most memory of all servers together, as a fraction of the machine's.
MEMORY_SHARE = 0.25


class Server:
    """One live server: ``pid`` as the kernel confirms it, ``info`` as the server has written it."""

    def __init__(self, stem: str, pid: int, info: dict[str, str]) -> None:
        self.stem = stem
        self.pid = pid
        self.info = info

    @property
    def last_used_s(self) -> float:
        """Time of the last request, in seconds of the machine's monotonic clock."""
        return float(self.info.get("used", "0"))

    @property
    def memory_bytes(self) -> int:
        """Resident memory in bytes, shared pages included."""
        try:
            with open(f"/proc/{self.pid}/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except OSError:
            return 0

    def stop(self) -> None:
        """Request its end; running commands finish undisturbed."""
        with contextlib.suppress(OSError):
            fd = pidfd.open_of(self.pid)
            try:
                if serves(self.stem, self.pid) or _listener(self.stem + ".sock") == self.pid:
                    pidfd.send_signal(fd, signal.SIGTERM)
            finally:
                os.close(fd)


def path() -> str:
    """Return the runtime directory, by the same rule as the client."""
    given = os.environ.get("UNSNARL_WARM_DIR", "")
    if given.startswith("/"):
        return given
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime.startswith("/") and _is_own(runtime):
        return runtime + "/unsnarl"
    return f"/tmp/unsnarl-{os.geteuid()}"


def _is_own(directory: str) -> bool:
    """Return whether a directory is this user's; ``su`` keeps the variable of the other user."""
    try:
        return os.stat(directory).st_uid == os.geteuid()
    except OSError:
        return False


def why_unsafe(directory: str) -> str | None:
    """Return why the directory must not be trusted; None if it may be, or does not exist yet."""
    try:
        found = os.lstat(directory)
    except FileNotFoundError:
        return None
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a directory"
    if found.st_uid != os.geteuid():
        return f"it belongs to user {found.st_uid}"
    if found.st_mode & 0o077:
        return f"others may enter it (mode {stat.S_IMODE(found.st_mode):o})"
    return None


def server(stem: str) -> Server | None:
    """Return the live server of a key, given the path of its files without suffix."""
    info = _info(stem)
    said = info.get("pid", "")
    pid = int(said) if said.isdecimal() and serves(stem, int(said)) else _listener(stem + ".sock")
    return None if pid is None else Server(stem, pid, info)


def serves(stem: str, pid: int) -> bool:
    """Return whether a process has the lock of a key open, and the key's socket exists."""
    return os.path.exists(stem + ".sock") and os.path.realpath(stem + ".lock") in open_locks(pid)


def open_locks(pid: int) -> set[str]:
    """Return the paths of all locks that a process has open; none if it is another user's."""
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return set()
    return {link for link in links if link.endswith(".lock")}


def servers(directory: str) -> list[Server]:
    """Return the live servers, the one idle for longest first."""
    found: list[Server] = []
    for stem in _stems(directory):
        one = server(stem)
        if one is not None:
            found.append(one)
    return sorted(found, key=lambda one: one.last_used_s)


def make_room(directory: str) -> None:
    """Stop servers until one more fits into the limits of number and memory."""
    alive = servers(directory)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * MEMORY_SHARE
    while alive and (len(alive) >= MAX_SERVERS or sum(s.memory_bytes for s in alive) > memory):
        alive.pop(0).stop()


def _stems(directory: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir(directory):
            if name.endswith(".sock"):
                yield os.path.join(directory, name.removesuffix(".sock"))


def _listener(sock_path: str) -> int | None:
    """Return the process that listens at a socket, None if no process of this user does."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        # By the descriptor of the directory: an address holds 107 bytes only.
        directory = os.open(os.path.dirname(sock_path), os.O_PATH | os.O_DIRECTORY)
        try:
            probe.connect(f"/proc/self/fd/{directory}/{os.path.basename(sock_path)}")
        except OSError:
            return None
        finally:
            os.close(directory)
        peer = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", peer)
    return pid if uid == os.geteuid() and pid > 0 else None


def _info(stem: str) -> dict[str, str]:
    try:
        with open(stem + ".info", encoding="utf-8", errors="surrogateescape") as file:
            return dict(line.rstrip("\n").split("\t", 1) for line in file if "\t" in line)
    except OSError:
        return {}
