"""The startup file by which ``unsnarl enable`` switches unsnarl on for an environment: writes, finds and removes it.

The file is ``unsnarl-enabled.pth``, beside ``unsnarl.pth``. ``site`` reads both, in the order of their names, at each
start of the environment's interpreter. It stays when unsnarl is upgraded; once unsnarl is uninstalled, it does nothing.

Invariant: this file is all that is written. ``remove`` leaves the environment as ``write`` found it.
"""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from dataclasses import dataclass, field

from unsnarl import enabled
from unsnarl.enabled import FILE
from unsnarl.run_settings import SWITCH, VARIABLE, RunSettings

HOOK_FILE = "unsnarl.pth"
_MARK = "# unsnarl enable "


@dataclass(frozen=True, slots=True)
class Enablement:
    """What an environment is enabled for.

    Attributes:
        options: as typed, such as ``--patch``.
        commands: names of console scripts, script files or modules; empty for every program.
        prefix: the environment, as ``sys.prefix`` was.
        path: the startup file.
    """

    options: list[str] = field(default_factory=list[str])
    commands: list[str] = field(default_factory=list[str])
    prefix: str = ""
    path: str = ""

    @property
    def is_for_here(self) -> bool:
        """Return whether the file has an effect: it has none where the environment was moved or copied to."""
        return RunSettings(prefix=self.prefix).is_for_this_interpreter()

    @property
    def described(self) -> str:
        """Return the programs and the options in words."""
        programs = ", ".join(self.commands) if self.commands else "every program"
        return f"{programs} ({' '.join(self.options)})" if self.options else programs


def directory() -> str | None:
    """Return the site-packages in which unsnarl's startup file is, or None."""
    for candidate in _site_directories():
        if os.path.isfile(os.path.join(candidate, HOOK_FILE)):
            return candidate
    return None


def find() -> Enablement | None:
    """Return what this environment is enabled for, or None.

    Raises:
        OSError: the startup file cannot be read.
    """
    for candidate in _site_directories():
        path = os.path.join(candidate, FILE)
        try:
            with open(path, encoding="ascii", errors="replace") as file:
                lines = file.read().splitlines()
        except FileNotFoundError:
            continue
        return _parsed(lines, path)
    return None


def write(folder: str, options: list[str], commands: list[str], settings: RunSettings) -> Enablement:
    """Enable the environment whose site-packages is ``folder``.

    Args:
        folder: from ``directory``.
        options: as typed; they are shown by ``status``.
        commands: names of programs, or none for every program.
        settings: those of each program, with a ``main_pid`` of 0.

    Raises:
        OSError: the startup file cannot be written.
    """
    path = os.path.join(folder, FILE)
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="ascii") as file:
            file.write(text(options, commands, settings))
        os.replace(temporary, path)
    except OSError:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise
    return Enablement(options, commands, settings.prefix, path)


def remove(enablement: Enablement) -> None:
    """Remove the startup file.

    Raises:
        OSError: it cannot be removed.
    """
    os.unlink(enablement.path)


def text(options: list[str], commands: list[str], settings: RunSettings) -> str:
    """Return the startup file: comments, of which ``find`` reads one, and the line that ``site`` executes.

    A program that is not meant costs a comparison with its command line, and loads nothing.
    """
    code = (
        f"try:\n import unsnarl.enabled\n unsnarl.enabled.start({settings.encode()!a}, {tuple(commands)!a})\n"
        "except Exception:\n pass"
    )
    wanted = " or ".join(f"{name!a} in ' '.join(sys.orig_argv)" for name in commands) or "True"
    is_on = f"os.environ.get({SWITCH!r}) != 'off' and {VARIABLE!r} not in os.environ"
    return (
        "# Written by `unsnarl enable`; `unsnarl disable` removes it.\n"
        f"{_MARK}{(options, commands, settings.prefix)!a}\n"
        f"import os, sys; exec({code!a}) if {is_on} and ({wanted}) else None\n"
    )


def _parsed(lines: list[str], path: str) -> Enablement:
    """Read the comment; a file without it is shown as enabled for every program."""
    for line in lines:
        if line.startswith(_MARK):
            try:
                options, commands, prefix = ast.literal_eval(line.removeprefix(_MARK))
            except (ValueError, SyntaxError):
                break
            return Enablement(list(options), list(commands), str(prefix), path)
    return Enablement(prefix=sys.prefix, path=path)


def _site_directories() -> list[str]:
    return list(dict.fromkeys([sysconfig.get_path("purelib"), *enabled.site_directories()]))
