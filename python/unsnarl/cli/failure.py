"""The failure of a command: an error line with cause and place, a hint, and an exit status.

A failure that the user can cause is raised as ``CommandError``. Invariant: only ``cli.main`` prints
errors and exits. A verb that has to clean up turns signals into ``Ended`` (``ending``).
"""

from unsnarl.errors import UnsnarlError

USAGE = 2
"""The status of an invalid command line, as in every shell."""

NOT_EXECUTABLE = 126
"""The status of a command that exists and cannot be run."""

NOT_FOUND = 127
"""The status of a command that does not exist."""


class Ended(BaseException):
    """A signal requests this command to end, which it does by the same signal after cleaning up.

    Attributes:
        signal_name: the name of the signal.
    """

    signal_name: str

    def __init__(self, signal_name: str) -> None:
        """Keep the name of the signal."""
        super().__init__(signal_name)
        self.signal_name = signal_name


class CommandError(UnsnarlError):
    """Stop the command with an error line, a hint and an exit status.

    Attributes:
        what: what went wrong and where, in one line.
        hint: the next step.
        status: the exit status of the command.
    """

    what: str
    hint: str
    status: int

    def __init__(self, what: str, hint: str, status: int = USAGE) -> None:
        """Keep the three apart, since callers use them separately."""
        super().__init__(what, hint, status)
        self.what = what
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        """Return two lines for stderr, each without line breaks from quoted text."""
        return f"error: {one_line(self.what)}\nhint: {one_line(self.hint)}"


def removed_directory() -> CommandError | None:
    """Return the failure of a command that needs the current directory, if this has been removed."""
    import os

    try:
        os.getcwd()
    except FileNotFoundError:
        return CommandError("the current directory has been removed", "change to another directory", 1)
    except OSError:
        pass
    return None


def one_line(text: str) -> str:
    """Replace control characters, including newlines, by their escapes."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
