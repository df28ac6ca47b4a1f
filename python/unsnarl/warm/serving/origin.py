"""How this server was started: its command line, its caller's circumstances, and where its files are.

A successor is started with the same, so nothing here changes in a server's life.
"""

from __future__ import annotations

import os
import sys

from ..dataclass import dataclass
from ..importing import preload
from .descriptors import copied


@dataclass(frozen=True)
class Origin:
    """The words of the command line, in their order, and the state of the process at the start."""

    exe: str
    """The native client, next to which unsnarl's own interpreter is."""
    runtime_directory: str
    command_id: str
    key_id: str
    session: str
    tty: str
    command: preload.Command
    python: list[str]
    """The command's interpreter with its options."""
    key: bytes
    lock: int
    """Descriptor of the key's start lock, which is held."""
    environment: dict[bytes, bytes]
    umask: int
    """The caller's mask: that of the imports."""
    directory: str
    """The caller's directory: that of the imports, if they read it."""

    @property
    def record(self) -> str:
        """Path of the command's files, without suffix."""
        return f"{self.runtime_directory}/{self.command_id}"

    @property
    def stem(self) -> str:
        """Path of the key's files, without suffix."""
        return f"{self.runtime_directory}/{self.key_id}"

    @property
    def is_in_session(self) -> bool:
        """Whether this server is in its callers' session, with their terminal."""
        return self.session == "shared"

    @classmethod
    def of(cls, words: list[str]) -> Origin:
        """Take over the words, the lock (descriptor 3) and the key (4); set the mask of the server's own files."""
        exe, runtime_directory, command_id, key_id, session, tty, kind, name, seed = words[:9]
        environment = preload.environment_as_given()
        if seed == "given":  # the caller has set none
            os.environ.pop("PYTHONHASHSEED")
            environment.pop(b"PYTHONHASHSEED")
        with open(4, "rb") as file:
            key = file.read()
        lock = copied(3)
        os.close(3)
        launch = next(number for number, word in enumerate(sys.orig_argv) if word.endswith("/launch.py"))
        return cls(
            exe=exe,
            runtime_directory=runtime_directory,
            command_id=command_id,
            key_id=key_id,
            session=session,
            tty=tty,
            command=preload.Command(kind, name),
            python=sys.orig_argv[:launch],
            key=key,
            lock=lock,
            environment=environment,
            umask=os.umask(0o077),
            directory=os.readlink("/proc/self/cwd"),
        )
