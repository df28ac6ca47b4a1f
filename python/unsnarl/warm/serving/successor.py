"""Learn again once runs have loaded more than was learned: start the server's successor.

Invariant: whatever goes wrong here, the server serves on with what it knows.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from .server import Server

# Runs of a server after which it is worth learning again if they have loaded more modules; by how often that was
# done since the command was learned from scratch. Who loads modules of ever new names must not learn for ever.
RELEARN_AFTER = (1, 2, 4, 8, 16, 64, 256, 1024)


def start_if_wanted(server: Server) -> int:
    """Start a process that learns, and serves then; return its number, or 0."""
    stem = f"{server.house}/{server.command_id}"
    size, (seen, times) = _size(stem), _seen(stem)
    if size == seen or server.requests < RELEARN_AFTER[min(times, len(RELEARN_AFTER) - 1)]:
        return 0
    try:
        _note(stem, size, times + 1)
        open(stem + ".news", "w").close()
        os.umask(server.umask)
        _go(server.directory)
        return _start(server)
    except OSError:
        return 0  # no room for another process, or for what it would write
    finally:
        os.umask(0o077)
        os.chdir("/")


def forget(stem: str) -> None:
    """Note that a command is being learned from scratch, with all that runs have loaded so far."""
    _note(stem, _size(stem), 0)


def _size(stem: str) -> int:
    try:
        return os.path.getsize(stem + ".wanted")
    except OSError:
        return 0


def _note(stem: str, size: int, times: int) -> None:
    with open(stem + ".seen", "w") as file:
        file.write(f"{size} {times}")


def _seen(stem: str) -> tuple[int, int]:
    """Return how much of what runs have loaded was learned from, and how often."""
    try:
        with open(stem + ".seen") as file:
            size, times = map(int, file.read().split())
            return size, times
    except (OSError, ValueError):
        return 0, 0


def _go(directory: str) -> None:
    try:
        os.chdir(directory)
    except OSError:
        pass  # it is gone, and with it all callers to whom it mattered


def _start(server: Server) -> int:
    launch = next(i for i, word in enumerate(server.launch_argv) if word.endswith("/launch.py"))
    python = os.path.dirname(server.exe) + "/python"
    pid = os.posix_spawn(
        python,
        [
            python, "-P", "-B", "-m", "unsnarl.warm.managing.begin",
            server.exe, server.house, server.command_id, server.key_id, server.session, server.tty,
            server.command.kind, server.command.name, *server.launch_argv[:launch],
        ],
        server.first_environment,
        file_actions=[(os.POSIX_SPAWN_DUP2, server.lock, 3)],
    )  # fmt: skip
    # Its interpreter is not up yet, and what asks for limits is imported two processes later. Set here around the
    # spawn they would bind the server: with its processor time used up, the kernel would end it.
    server.limits.hand_on(pid)
    return pid
