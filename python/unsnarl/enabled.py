"""The start-up of a program in an environment that ``unsnarl enable`` has switched on.

``unsnarl-enabled.pth`` imports this module while the interpreter starts. If the program is meant, the settings go into
the environment variable of ``unsnarl run``; ``_unsnarl_boot`` then finds them as if ``unsnarl run`` had started the
program, since ``site`` reads ``unsnarl.pth`` next (in the order of names).

Invariant: it changes nothing for the commands of unsnarl itself, nor if the variable is there already, even empty: an
explicit ``unsnarl run`` wins. It imports only what every interpreter has loaded by then.
"""

import os
import site
import sys

from unsnarl import run_settings

FILE = "unsnarl-enabled.pth"
"""Its name comes before ``unsnarl.pth``: the settings are in the environment when that one looks for them."""

OWN_CODE = "import sys\ntry:\n from unsnarl.cli import main\n"
"""What the native command ``unsnarl`` has python execute (``crates/client/src/verb.rs``)."""


def start(settings: str, commands: "tuple[str, ...]") -> None:
    """Pass the settings on, if this is one of the commands; without commands, every program is meant.

    Args:
        settings: the text of ``RunSettings.encode``.
        commands: names of console scripts, script files or modules.
    """
    if run_settings.VARIABLE in os.environ or run_settings.is_switched_off():
        return
    name = _program_name()
    if commands and name not in commands:
        return
    if _is_own(name) or not run_settings.decode(settings).is_for_this_interpreter():
        return
    os.environ[run_settings.VARIABLE] = settings


def site_directories() -> list[str]:
    """Return the directories whose startup files ``site`` reads.

    ``site.PREFIXES`` is not yet that of a virtual environment while its startup files are read, up to CPython 3.13.
    """
    return [
        *site.getsitepackages([sys.prefix, *site.PREFIXES]),
        *([site.getusersitepackages()] if site.ENABLE_USER_SITE else []),
    ]


def is_here() -> bool:
    """Return whether this environment has the startup file of ``unsnarl enable``."""
    return any(os.path.isfile(os.path.join(folder, FILE)) for folder in site_directories())


def _program_name() -> str:
    """Return the module of ``-m``, the code of ``-c``, or the script without its directory.

    While ``site`` runs, ``sys.argv`` begins with ``-m`` or ``-c`` and leaves out the word behind it.
    """
    arguments: list[str] = getattr(sys, "argv", [])
    first = arguments[0] if arguments else ""
    if first not in ("-m", "-c"):
        return first.rpartition("/")[2]
    words = sys.orig_argv
    word = words[len(words) - len(arguments)] if len(arguments) < len(words) else ""
    # The value may be attached to its letter, in a cluster of options: -um gunicorn, -umgunicorn.
    return word.partition(first[1])[2] if first == "-m" and word.startswith("-") else word


def _is_own(name: str) -> bool:
    return name == "unsnarl" or name.startswith(("unsnarl.", OWN_CODE))
