"""Removes unused files of keys and commands from the runtime directory.

A key's files end with its server, since a later server writes its own. The facts of a command are kept while its
script exists and the command is in use.

Invariant: a key's files are removed only with its lock held, so no server has them in use. A client that has opened
the lock before finds that the name no longer leads to it, and starts no server (crates/client/src/server/start.rs).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time

from unsnarl.warm import facts as facts_of

# Seconds after which the files of a key without a server expire, and the facts of a command without calls.
KEY_EXPIRES_S = 86_400
COMMAND_EXPIRES_S = 30 * 86_400
# Hexadecimal digits of a name (crates/client/src/server/key.rs, `hash`).
_DIGITS = 32


def sweep(directory: str) -> None:
    """Remove the files that have expired. Raises OSError if the directory cannot be listed."""
    groups: dict[str, list[str]] = {}
    for name in os.listdir(directory):
        stem, _, suffix = name.partition(".")
        if suffix and len(stem) == _DIGITS and not stem.strip("0123456789abcdef"):
            groups.setdefault(os.path.join(directory, stem), []).append(os.path.join(directory, name))
    for stem, files in groups.items():
        with contextlib.suppress(OSError):
            if stem + ".lock" in files:
                _sweep_key(stem, files)
            elif _has_expired(stem, files):
                _remove(files)


def _sweep_key(stem: str, files: list[str]) -> None:
    if _age_s(files) < KEY_EXPIRES_S:
        return
    with open(stem + ".lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if a server or a start holds it
        _remove([*(file for file in files if not file.endswith(".lock")), stem + ".lock"])


def _has_expired(stem: str, files: list[str]) -> bool:
    age_s = _age_s(files)
    if age_s > COMMAND_EXPIRES_S:
        return True
    facts = facts_of.load(stem + ".facts")
    script = facts.command if facts is not None else ""
    return age_s > KEY_EXPIRES_S and script.startswith("/") and not os.path.exists(script)


def _age_s(files: list[str]) -> float:
    """Return the time since the last change of any of the files, in seconds."""
    return time.time() - max(os.lstat(file).st_mtime for file in files)


def _remove(files: list[str]) -> None:
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)
