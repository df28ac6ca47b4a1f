"""The exceptions of unsnarl, in one tree: ``except UnsnarlError`` catches all of them.

Invariant: this module imports nothing, since it is loaded before the first line of every
program under ``unsnarl run``.
"""

__all__ = ["HintedError", "UnsnarlError", "UnsupportedInterpreter"]


class UnsnarlError(Exception):
    """Be the base of every exception that unsnarl raises on purpose."""


class HintedError(UnsnarlError):
    """Carry a reason and a hint; the base of every refusal of this kind.

    Attributes:
        reason: what is wrong, as a sentence without a full stop.
        hint: what the user can do about it.
    """

    reason: str
    hint: str

    def __init__(self, reason: str, hint: str) -> None:
        """Keep the reason and the hint apart, so that callers can show either."""
        super().__init__(reason, hint)
        self.reason = reason
        self.hint = hint

    def __str__(self) -> str:
        """Return the reason and the hint in one line."""
        return f"{self.reason} (hint: {self.hint})"


class UnsupportedInterpreter(HintedError):  # noqa: N818 -- a fact about the interpreter, not a mistake
    """Say that the scheduler cannot be installed in this interpreter.

    The interpreter is exactly as it was before the attempt.
    """
