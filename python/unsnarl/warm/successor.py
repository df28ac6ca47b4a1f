"""Learn again once runs have loaded more than was learned: start the server's successor.

Invariant: whatever goes wrong here, the server serves on with what it knows.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from .server import Server

# Runs after which it is worth learning again if workers have loaded more modules.
RELEARN_AFTER = (1, 2, 4, 8, 16, 64, 256, 1024)


def start_if_wanted(server: Server) -> int:
    """Start a process that learns, and serves then; return its number, or 0."""
    stem = f"{server.house}/{server.command_id}"
    try:
        size = os.path.getsize(stem + ".wanted")
    except OSError:
        return 0
    if not any(server.requests >= n for n in RELEARN_AFTER) or size == _seen(stem):
        return 0
    try:
        with open(stem + ".seen", "w") as file:
            file.write(str(size))
        open(stem + ".news", "w").close()
        os.umask(server.umask)
        return _start(server)
    except OSError:
        return 0  # no room for another process, or for what it would write
    finally:
        os.umask(0o077)


def _seen(stem: str) -> int:
    try:
        with open(stem + ".seen") as file:
            return int(file.read() or 0)
    except (OSError, ValueError):
        return 0


def _start(server: Server) -> int:
    launch = next(i for i, word in enumerate(server.launch_argv) if word.endswith("/launch.py"))
    python = os.path.dirname(server.exe) + "/python"
    return os.posix_spawn(
        python,
        [
            python, "-P", "-B", "-m", "unsnarl.warm.begin",
            server.exe, server.house, server.command_id, server.key_id, server.session, server.tty,
            server.command.kind, server.command.name, *server.launch_argv[:launch],
        ],
        server.first_environment,
        file_actions=[(os.POSIX_SPAWN_DUP2, server.lock, 3)],
    )  # fmt: skip
