"""Writes a command's result to stdout; all other output goes to stderr."""

import os
import sys

from unsnarl.cli.failure import CommandError


def show(text: str) -> int:
    """Write a result on stdout and return the status of success.

    Raises:
        CommandError: stdout cannot be written to, for example because the disk is full.
        BrokenPipeError: the reader has closed the pipe; the command must end by SIGPIPE.
    """
    if sys.stdout is None:  # the caller has closed it
        return 0
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard()
        raise CommandError(
            f"cannot write to stdout: {error.strerror}", "redirect it to a place with free space", 1
        ) from None
    return 0


def show_wrapped(text: str) -> int:
    """Write a result as ``show`` does, with its lines wrapped between words at the width of the terminal, if any."""
    from unsnarl.report import columns

    width = columns.known(1)
    return show("".join(f"{line}\n" for sentence in text.splitlines() for line in columns.wrapped(sentence, width)))


def show_fields(*fields: str) -> int:
    """Write the fields of one thing as ``show`` does, on several lines where the terminal is narrow."""
    from unsnarl.report import columns

    return show("".join(f"{line}\n" for line in columns.joined(fields, columns.known(1))))


def flush() -> None:
    """Flush stdout; fails as ``show`` does."""
    show("")


def discard() -> None:
    """Redirect stdout to /dev/null, so that buffered output is discarded at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except OSError:
        return
