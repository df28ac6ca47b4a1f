"""``unsnarl status``: shows what ``unsnarl enable`` has switched on in this environment."""

from __future__ import annotations

import os
import sys

from unsnarl import enablement
from unsnarl.cli.failure import CommandError
from unsnarl.cli.result import show, show_wrapped
from unsnarl.run_settings import is_switched_off

_USAGE_TEXT = """\
usage: unsnarl status

Show for which programs of this environment unsnarl is enabled, and the file
that does it. The status is 0 if it is enabled, and 3 if it is not, or if that
has no effect on programs started from here: the environment was moved, or
UNSNARL=off is set.
"""
NOT_ENABLED = 3
"""As ``systemctl status`` of a unit that does not run."""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl status`` and carry them out.

    Raises:
        CommandError: an argument is invalid, or the startup file cannot be read.
    """
    if arguments in (["-h"], ["--help"]):
        return show(_USAGE_TEXT)
    if arguments:
        raise CommandError(f"unexpected argument {arguments[0]!r}, in `unsnarl status`", "it takes none")
    try:
        found = enablement.find()
    except OSError as error:
        raise CommandError(f"cannot read {error.filename}: {error.strerror}", "check its permissions", 1) from None
    if found is None:
        show_wrapped(f"not enabled: programs of {sys.prefix} are plain unless `unsnarl run` starts them\n")
        return NOT_ENABLED
    show_wrapped(f"enabled for {found.described} of {sys.prefix}, by {found.path}\n")
    without_effect = _reason_without_effect(found)
    if without_effect:
        show_wrapped(f"without effect: {without_effect}; run `unsnarl enable` again\n")
    if is_switched_off():
        show_wrapped("without effect on programs started from here: UNSNARL=off is set; unset it\n")
    return NOT_ENABLED if without_effect or is_switched_off() else 0


def _reason_without_effect(found: enablement.Enablement) -> str | None:
    if enablement.directory() != os.path.dirname(found.path):
        return f"{enablement.HOOK_FILE} is not beside it"
    return None if found.is_for_here else "the environment was moved or copied"
