"""Makes a pack of the command for the duration of the examination, if the command can have one.

``forecast`` estimates what the pack should save.

Invariant: nothing remains afterwards except what the command itself leaves.
"""

from __future__ import annotations

import os
import shlex
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass

from unsnarl.doctor import forecast, trial
from unsnarl.doctor.forecast import Forecast

LONGEST_S = 10.0
"""A command that takes longer is not packed: its start is a small part of the time."""

_RECORDING_S = 30.0
"""Seconds for recording and compiling, in addition to the command itself."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A command with its pack, or why it has none.

    Attributes:
        words: the launcher and the arguments; empty if there is no pack.
        what: the commands that a user would type.
        forecast: the estimated saving, or None if there is no estimate.
        reason: why there is no pack; else empty.
    """

    words: list[str]
    what: str = ""
    forecast: Forecast | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Packable:
    """The part of a command line that can be packed: the target for ``unsnarl pack``, and the arguments.

    Attributes:
        target: the path of a console script, or ``-m`` and a module; empty if it is neither.
        arguments: the program's.
        flags: the interpreter's, as the script's first line has them.
    """

    target: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def command(self) -> forecast.Command:
        """Return the command to run."""
        *options, name = self.target
        return forecast.Command("module" if options else "script", name, self.arguments, self.flags)


def launcher(
    packable: Packable, directory: str, environment: Mapping[str, str], limit_s: float, stock_s: float
) -> Packed:
    """Pack a command into a directory, with a recording run of its own arguments.

    Args:
        packable: the command.
        directory: an empty one.
        environment: of all processes.
        limit_s: seconds the command may take.
        stock_s: seconds the command took without a pack.
    """
    unsnarl = os.path.join(sysconfig.get_path("scripts"), "unsnarl")
    if not packable.target or not os.access(unsnarl, os.X_OK):
        return Packed([], reason="only a console script or `-m MODULE` has a pack")
    if stock_s > LONGEST_S:
        return Packed([], reason=f"the command takes more than {LONGEST_S:g} s, of which its start is a small part")
    name = os.path.basename(packable.target[-1])
    start, pack = os.path.join(directory, name), os.path.join(directory, f"{name}.pack")
    arguments = shlex.join(packable.arguments)
    words = [unsnarl, "pack", *packable.target, "-o", pack, "--launcher", start, "--with", arguments]
    made = trial.run_command(words, environment, limit_s + _RECORDING_S)
    if made.status != 0:
        why = [line.removeprefix("error: ") for line in made.complaint.splitlines() if line.startswith("error: ")]
        return Packed([], reason=why[-1] if why else "`unsnarl pack` failed")
    expected = forecast.measure(packable.command, pack, environment, limit_s, stock_s)
    return Packed([start, *packable.arguments], _what(packable, name), expected)


def _what(packable: Packable, name: str) -> str:
    recorded = shlex.quote(shlex.join(packable.arguments))
    target = " ".join([*packable.target[:-1], name])
    launcher = name.removesuffix(".py")  # the pack's name without its suffix, which must differ from the script's
    started = shlex.join([f"./{launcher}", *packable.arguments])
    return f"unsnarl pack {target} -o {launcher}.pack --with {recorded}; {started}"
