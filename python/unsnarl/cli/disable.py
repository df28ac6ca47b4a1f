"""``unsnarl disable``: ends what ``unsnarl enable`` began, for all programs or for some commands."""

from __future__ import annotations

import os
import sys

from unsnarl import enablement
from unsnarl.cli.failure import CommandError
from unsnarl.cli.result import show

_USAGE_TEXT = """\
usage: unsnarl disable [COMMAND...]

End `unsnarl enable` for this environment, or only for the named commands. The
environment is then as it was before; programs that run already are not changed.
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl disable`` and carry them out.

    Raises:
        CommandError: an argument is invalid, or the startup file cannot be changed.
    """
    if any(word in ("-h", "--help") for word in arguments):
        return show(_USAGE_TEXT)
    for word in arguments:
        if word.startswith("-"):
            raise CommandError(f"unknown option {word}, in `unsnarl disable`", "see `unsnarl disable --help`")
    try:
        found = enablement.find()
        if found is None:
            if arguments:
                raise CommandError(f"{sys.prefix} is not enabled", "`unsnarl status` shows what is", 1)
            return show(f"{sys.prefix} is not enabled\n")
        left = _left(found, arguments)
        if left:
            _narrow(found, left)
            return show(f"still enabled for {', '.join(left)} of {sys.prefix}\n")
        enablement.remove(found)
    except OSError as error:
        raise CommandError(
            f"cannot change {error.filename}: {error.strerror}",
            "check the owner and the permissions of the directory",
            1,
        ) from None
    return show(f"disabled for {sys.prefix}\n")


def _left(found: enablement.Enablement, names: list[str]) -> list[str]:
    """Return the commands that stay enabled."""
    for name in names:
        if not found.commands:
            raise CommandError(
                f"every program of {sys.prefix} is enabled, not {name!r} alone",
                "end it for all with `unsnarl disable`, then enable the commands you want",
                1,
            )
        if name not in found.commands:
            raise CommandError(f"{name!r} is not enabled", f"enabled are: {', '.join(found.commands)}", 1)
    return [name for name in found.commands if name not in names] if names else []


def _narrow(found: enablement.Enablement, left: list[str]) -> None:
    from unsnarl.cli import enable

    settings = enable.settings_of(found.options)
    enablement.write(os.path.dirname(found.path), found.options, left, settings)
