"""Starts a server's successor once runs have loaded modules that were not learned.

The successor learns again, listens in the server's place, and inherits the start lock without a gap.

Invariant: no failure here ends the server, which serves on with the modules it has.
"""

from __future__ import annotations

import os

from .. import ledger

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from ..worker.limits import Limits
    from .origin import Origin

# Runs of a server after which it learns again if they have loaded new modules; the index is the number of such
# rounds since the command was learned from scratch. A command whose modules always have new names must not learn
# for ever.
RELEARN_AFTER = (1, 2, 4, 8, 16, 64, 256, 1024)
# As how many modules a compiled one counts, which the dynamic linker loads with its libraries.
COMPILED = 10

# The module that unsnarl's own interpreter runs for a start: another process, so it is named and not imported.
BEGIN = "unsnarl.warm.managing.begin"


def start_if_wanted(origin: Origin, limits: Limits, requests: int, modules: int) -> int:
    """Start a process that learns and then serves, if runs have given reason to; return its number, or 0.

    ``requests`` is how many runs the server has had, and ``modules`` how many modules it has imported ahead.
    """
    stem = origin.record
    size, (seen, times) = _size(stem), _seen(stem)
    if size == seen or requests < RELEARN_AFTER[min(times, len(RELEARN_AFTER) - 1)]:
        return 0
    if not may_learn(origin.environment, stem, seen, modules):
        return 0
    try:
        _note(stem, size, times + 1)
        open(stem + ".news", "w").close()
        os.umask(origin.umask)
        _go(origin.directory)
        return _start(origin, limits)
    except OSError:
        return 0  # no room for another process, or for what it would write
    finally:
        os.umask(0o077)
        os.chdir("/")


def may_learn(environment: dict[bytes, bytes], stem: str, seen: int, modules: int) -> bool:
    """Return whether another learning run is allowed, and worth what it takes.

    Served calls must have saved as much. What runs import themselves must have cost as much, too, unless the user has
    asked for the server: Mercurial's tests enable an extension here and there, each of which takes a millisecond, and
    learning 460 modules again for them took 6 to 13 s, eight times.
    """
    if environment.get(b"UNSNARL_WARM_FROZEN"):
        return False
    if environment.get(b"UNSNARL_WARM_SPEND") == b"any":
        return True
    sums = ledger.read(stem)
    return sums.affords() and (sums.asked_ms > 0 or sums.repays(_late(stem, seen), modules))


def _late(stem: str, seen: int) -> int:
    """Return how many modules runs have imported themselves since the list of them was ``seen`` bytes long."""
    try:
        with open(stem + ".wanted", "rb") as file:
            file.seek(seen)
            lines = file.read().splitlines()
    except OSError:
        return 0
    return len(lines) + (COMPILED - 1) * sum(line.endswith(b".so") for line in lines)


def forget(stem: str) -> None:
    """Note that a command is being learned from scratch, with all that runs have loaded so far."""
    _note(stem, _size(stem), 0)


def learned_bytes(stem: str) -> int:
    """Return how much of the list of modules that runs have loaded was there when the command was learned last."""
    return _seen(stem)[0]


def _size(stem: str) -> int:
    try:
        return os.path.getsize(stem + ".wanted")
    except OSError:
        return 0


def _note(stem: str, size: int, times: int) -> None:
    with open(stem + ".seen", "w") as file:
        file.write(f"{size} {times}")


def _seen(stem: str) -> tuple[int, int]:
    """Return the size of the list of loaded modules at the last learning, and how often a successor has learned."""
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
        pass  # removed, and with it all callers to whom it mattered


def _start(origin: Origin, limits: Limits) -> int:
    python = os.path.dirname(origin.exe) + "/python"
    pid = os.posix_spawn(
        python,
        [
            python, "-P", "-B", "-m", BEGIN,
            origin.exe, origin.runtime_directory, origin.command_id, origin.key_id, origin.session, origin.tty,
            origin.command.word, origin.command.name, *origin.python,
        ],
        {name: value for name, value in origin.environment.items() if name != ledger.ASKED},
        file_actions=[(os.POSIX_SPAWN_DUP2, origin.lock, 3)],
    )  # fmt: skip
    # Set here, from outside: set around the spawn they would bind the server, and with its processor time used up
    # the kernel would end it. The imports, for which limits matter, run two programs later.
    limits.hand_on(pid)
    return pid
