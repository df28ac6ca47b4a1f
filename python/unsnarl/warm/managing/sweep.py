"""What nobody will come back to in the runtime directory: files of keys and commands.

A key's files are over with its server, since a later one writes its own; what was learned about a command is kept
while its script is there and it is in use.

Invariant: what belongs to a key is removed only with its lock held, so by nobody's side; a client that has opened
the lock before sees that it is no longer the one of that name, and starts nothing (crates/client/src/server/start.rs).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from unsnarl.warm import facts as facts_of

# Seconds after which a key that nobody serves is over, and what was learned about a command that nobody calls.
KEY_OVER_S = 86_400
COMMAND_OVER_S = 30 * 86_400
# Hexadecimal digits of a name (crates/client/src/server/key.rs, `hash`).
_DIGITS = 32


def sweep(directory: str) -> None:
    """Remove what is over. Raises OSError if the directory cannot be listed."""
    groups: dict[str, list[str]] = {}
    for name in os.listdir(directory):
        stem, _, suffix = name.partition(".")
        if suffix and len(stem) == _DIGITS and not stem.strip("0123456789abcdef"):
            groups.setdefault(os.path.join(directory, stem), []).append(os.path.join(directory, name))
    for stem, files in groups.items():
        with contextlib.suppress(OSError):
            if stem + ".lock" in files:
                _sweep_key(stem, files)
            elif _is_over(stem, files):
                _remove(files)


def _sweep_key(stem: str, files: list[str]) -> None:
    if _age_s(files) < KEY_OVER_S:
        return
    with open(stem + ".lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # or it has a server, or is about to
        _remove([*(file for file in files if not file.endswith(".lock")), stem + ".lock"])


def _is_over(stem: str, files: list[str]) -> bool:
    age_s = _age_s(files)
    if age_s > COMMAND_OVER_S:
        return True
    facts = facts_of.load(stem + ".facts")
    script = facts.command if facts is not None else ""
    return age_s > KEY_OVER_S and script.startswith("/") and not os.path.exists(script)


def _age_s(files: list[str]) -> float:
    """Return for how long nothing of it has been written."""
    return time.time() - max(os.lstat(file).st_mtime for file in files)


def _remove(files: list[str]) -> None:
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
