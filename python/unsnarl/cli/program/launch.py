"""Replaces this process by the interpreter, as the last step of ``unsnarl run``.

After the exec nothing of unsnarl surrounds the program: it has python's own argv, ``__main__``, exit
status, signals, standard streams and process id. The settings for its start are in the environment,
where ``_unsnarl_boot`` reads them.
"""

import os
import site
import sys

from unsnarl.cli.failure import NOT_EXECUTABLE, CommandError
from unsnarl.run_settings import VARIABLE, RunSettings, is_switched_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

HOOK_FILE = "unsnarl.pth"
"""The file in site-packages whose one line imports ``_unsnarl_boot``."""

_COERCED_LOCALES = ("C.UTF-8", "C.utf8", "UTF-8")
"""The values that LC_CTYPE is coerced to (``_TARGET_LOCALES`` in CPython's ``Python/pylifecycle.c``)."""


def launch(words: list[str], settings: RunSettings, *, has_user_site: bool = True) -> "NoReturn":
    """Replace this process by ``python words...`` with some settings.

    Args:
        words: the command line after the interpreter.
        settings: settings for the program's start-up; dropped if ``UNSNARL=off``.
        has_user_site: whether the program will use the user's site-packages.

    Raises:
        CommandError: the interpreter cannot be executed.
    """
    environment = environment_as_given()
    if not is_switched_off():
        if is_hooked(has_user_site):
            environment[VARIABLE] = settings.encode()
        else:
            _warn_unhooked()
    if not sys.executable:
        raise CommandError("python does not know its own path", "start unsnarl by its full path", NOT_EXECUTABLE)
    try:
        os.execve(sys.executable, [sys.executable, *words], environment)
    except OSError as error:
        raise CommandError(
            f"cannot execute {sys.executable}: {error.strerror}",
            "check the interpreter, and the length of the arguments",
            NOT_EXECUTABLE,
        ) from None


def environment_as_given() -> dict[str, str]:
    """Return the environment with which this process was started, without earlier settings.

    In the C locale the interpreter sets LC_CTYPE for its children (PEP 538,
    ``_Py_CoerceLegacyLocale``). The program's interpreter must do so itself, since only
    then does it enable its UTF-8 mode.
    """
    environment = {name: value for name, value in os.environ.items() if name != VARIABLE}
    if environment.get("LC_CTYPE") in _COERCED_LOCALES:
        given = _variable_as_given("LC_CTYPE")
        if given is None:
            del environment["LC_CTYPE"]
        else:
            environment["LC_CTYPE"] = given
    return environment


def _variable_as_given(name: str) -> str | None:
    """Return a variable from the block that execve wrote, which setenv does not change."""
    try:
        with open("/proc/self/environ", "rb") as stream:
            block = stream.read()
    except OSError:
        return os.environ.get(name)
    for entry in block.split(b"\0"):
        found, _, value = entry.partition(b"=")
        if found == os.fsencode(name):
            return os.fsdecode(value)
    return None


def is_hooked(has_user_site: bool) -> bool:
    """Tell whether the interpreter's start-up will read the hook file."""
    directories = site.getsitepackages()
    if has_user_site and site.ENABLE_USER_SITE:
        directories.append(site.getusersitepackages())
    return any(os.path.isfile(os.path.join(directory, HOOK_FILE)) for directory in directories)


def _warn_unhooked() -> None:
    if sys.stderr is not None:
        sys.stderr.write(
            f"unsnarl: the program runs without the GIL scheduler: {HOOK_FILE} is in no site-packages it reads"
            f" (hint: install unsnarl with `{sys.executable} -m pip install unsnarl`)\n"
        )
