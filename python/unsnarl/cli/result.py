"""A command's result goes to stdout, and only there; talk goes to stderr."""

import os
import sys

from unsnarl.cli.failure import CommandError


def show(text: str) -> int:
    """Write a result on stdout and return the status of success.

    Raises:
        CommandError: stdout cannot be written to, the disk being full for instance.
        BrokenPipeError: the reader has left; the command is to end by SIGPIPE.
    """
    if sys.stdout is None:  # the caller closed it: nobody is to see the result
        return 0
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard()
        raise CommandError(
            f"cannot write to stdout: {error.strerror}", "redirect it to where there is room", 1
        ) from None
    return 0


def flush() -> None:
    """Write out what is still buffered, and fail as ``show`` does."""
    show("")


def discard() -> None:
    """Point stdout nowhere: what is still buffered for it can be written then, to no effect."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError:
        return
