"""What a start was given: the words of its command line, and the circumstances of its caller.

Invariant: the environment is the caller's, without what this interpreter has added.
"""

from __future__ import annotations

import hashlib
import os

from unsnarl.warm import ledger
from unsnarl.warm.importing import preload
from unsnarl.warm.renewals import DIRECTORY

# Run by the command's own interpreter, for learning and for serving.
LAUNCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "launch.py")


class Start:
    """The words of the command line, see `begin.py`."""

    def __init__(self, words: list[str]) -> None:
        self.exe, self.runtime_directory, self.command_id, self.key_id, self.session, self.tty = words[:6]
        self.kind, self.name, self.python = words[6:9]
        self.options = words[9:]
        # Without the variables that this interpreter has set: they would change the key.
        self.environment = preload.environment_as_given()
        # The caller's mask is for the imports; files written here are private.
        self.umask = os.umask(0o077)
        # The hash seed of learning runs, if the caller sets none: set to nothing, it is as if it were not set.
        self.has_seed, self.seed = bool(self.environment.get(b"PYTHONHASHSEED")), 1
        # The lock of who learns the command, once it is taken.
        self.learning = -1
        # Whether learning runs have idle priority: nobody waits for them, and the machine has not been full so far.
        self.gives_way = self.is_bound

    @property
    def is_bound(self) -> bool:
        """Return whether calls have to pay for this start, which nobody waits for."""
        return not self.environment.get(ledger.ASKED) and self.environment.get(b"UNSNARL_WARM_SPEND") != b"any"

    @property
    def stem(self) -> str:
        """Return the path of the command's record, without suffix."""
        return os.path.join(self.runtime_directory, self.command_id)

    def digest(self, name: str) -> str:
        """Return a digest of the value that a variable has here; of the directory, for :data:`DIRECTORY`."""
        value = os.getcwdb() if name == DIRECTORY else self.environment.get(os.fsencode(name), b"")
        return hashlib.sha256(value).hexdigest()[:32]
