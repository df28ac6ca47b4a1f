"""How a command of unsnarl fails: one line that says what and where, one hint, a status.

A failure the user can cause is raised as ``CommandError`` and shown by ``cli.main``
alone; nothing else in the command line prints errors or exits. A verb that has
something to undo turns signals into ``Ended`` (``ending``).
"""

from unsnarl.errors import UnsnarlError

USAGE = 2
"""The status of a command line that makes no sense, as in every shell."""

NOT_EXECUTABLE = 126
"""The status of a command that was found and cannot be run."""

NOT_FOUND = 127
"""The status of a command that was not found."""


class Ended(BaseException):
    """A signal asks this command to end, which it does once everything it began is undone.

    Attributes:
        signal_name: the signal, of which the command dies then.
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
        """Keep the three apart: they go to different places."""
        super().__init__(what, hint, status)
        self.what = what
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        """Return the two lines for stderr, each of them one line whatever it quotes."""
        return f"error: {one_line(self.what)}\nhint: {one_line(self.hint)}"


def one_line(text: str) -> str:
    """Show control characters, newlines among them, instead of obeying them."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
