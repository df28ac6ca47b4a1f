"""Shims: small files, first on PATH, through which a command is started warm.

A shim is text: its ``#!`` line names the native executable, the rest the
interpreter and the script. It can be copied, and handed to a test-suite as
"the program".

Invariant: only files that carry the mark below are ever overwritten or removed.
"""

from __future__ import annotations

import os
import sysconfig

MARK = "unsnarl-shim 1"
# The kernel cuts a longer #! line (BINPRM_BUF_SIZE, include/uapi/linux/binfmts.h).
_LONGEST_LINE = 255


class ShimError(Exception):
    """A shim cannot be written or removed; ``what`` says why, ``hint`` what to do."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what, hint)
        self.what = what
        self.hint = hint


def directory() -> str:
    """Return the directory of the shims."""
    data = os.environ.get("XDG_DATA_HOME", "")
    if not data.startswith("/"):
        data = os.path.expanduser("~/.local/share")
    return os.path.join(data, "unsnarl", "shims")


def executable() -> str:
    """Return the native executable of this environment."""
    return os.path.join(sysconfig.get_path("scripts"), "unsnarl")


def is_native() -> bool:
    """Return whether it is a native executable, and not the script of a build without one."""
    try:
        with open(executable(), "rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def is_shim(path: str) -> bool:
    """Return whether a file is a shim."""
    try:
        with open(path, "rb") as file:
            return f"\n{MARK}\n".encode() in file.read(4096)
    except OSError:
        return False


def find_plain(name: str) -> str | None:
    """Return the path of a command as PATH would without shims."""
    for entry in os.get_exec_path():
        path = os.path.join(entry, name)
        if os.path.isfile(path) and os.access(path, os.X_OK) and not is_shim(path):
            return os.path.abspath(path)
    return None


def text(python: str | None, options: list[str], script: str) -> str:
    """Return the text of a shim; ``python`` is None if each call looks the script's interpreter up.

    Raises ShimError if a path cannot be written in a shim.
    """
    first = f"#!{executable()} --shim"
    if len(first) > _LONGEST_LINE or " " in executable():
        raise ShimError(
            f"the kernel cannot start a shim through {executable()!r}",
            "install unsnarl where the path is shorter and has no spaces, or use `unsnarl warm run -- CMD`",
        )
    named = [] if python is None else [f"python={python}", *(f"option={option}" for option in options)]
    lines = [first, MARK, *named, f"script={script}"]
    if any("\n" in line for line in lines):
        raise ShimError(f"the path {script!r} holds a line break", "rename it")
    return "\n".join(lines) + "\n"


def write(name: str, content: str) -> str:
    """Write the shim of that name and return its path."""
    os.makedirs(directory(), exist_ok=True)
    path = os.path.join(directory(), name)
    if os.path.lexists(path) and not is_shim(path):
        raise ShimError(f"{path} exists and is no shim", "move it away")
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(content)
    os.chmod(temporary, 0o755)
    os.rename(temporary, path)
    return path


def remove(name: str) -> None:
    """Remove a shim. Raises ShimError if there is none of that name."""
    path = os.path.join(directory(), name)
    if not is_shim(path):
        raise ShimError(f"no shim named {name!r} in {directory()}", "`unsnarl warm status` lists them")
    os.unlink(path)


def names() -> list[str]:
    """Return the names of all shims."""
    try:
        entries = sorted(os.listdir(directory()))
    except OSError:
        return []
    return [name for name in entries if is_shim(os.path.join(directory(), name))]
