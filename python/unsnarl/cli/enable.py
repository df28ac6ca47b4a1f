"""``unsnarl enable``: switches unsnarl on for an environment, or for some of its commands."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from importlib.machinery import PathFinder

from unsnarl import enabled, enablement
from unsnarl.cli import gil
from unsnarl.cli.failure import NOT_FOUND, CommandError
from unsnarl.cli.program.arguments import parse_for
from unsnarl.cli.result import show
from unsnarl.run_settings import RunSettings

_USAGE_TEXT = """\
usage: unsnarl enable [OPTIONS...] [COMMAND...]

From now on, start every program of this environment as `unsnarl run` would,
however it is started; or only the named commands, with their children.

  COMMAND                a console script of this environment (gunicorn), a module
                         (for `python -m`), or the name of a script (manage.py)

options, as for `unsnarl run`:
  --patch                replace classes of threading and queue by native ones
  --slice MS             the slice of a CPU-bound thread, in milliseconds
  --batch-share PERCENT  the least share of the GIL that CPU-bound threads keep
  --no-kernel-hints      do not tell the kernel which threads are CPU-bound
  -h, --help             this text

`unsnarl disable` ends it, `unsnarl status` shows it. Programs that run already
are not changed. UNSNARL=off in the environment of a program runs it plainly.
"""
_HELP = "see `unsnarl enable --help`"
_OPTIONS = ("--patch", "--slice", "--batch-share", "--no-kernel-hints")
_WITH_VALUE = ("--slice", "--batch-share")
_PYTHON_NAME = re.compile(r"python[\d.]*t?")


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl enable`` and carry them out.

    Raises:
        CommandError: an argument is invalid, or the environment cannot be enabled.
    """
    if any(word in ("-h", "--help") for word in arguments):
        return show(_USAGE_TEXT)
    options, commands = _split(arguments)
    settings_of(options)
    for command in commands:
        _check(command)
    folder = _writable_directory()
    try:
        earlier = enablement.find()
        options, commands = _joined(earlier, options, commands)
        _check_scheduler()
        written = enablement.write(folder, options, commands, settings_of(options))
    except OSError as error:
        raise CommandError(
            f"cannot write {os.path.join(folder, enabled.FILE)}: {error.strerror}",
            "check the owner and the permissions of the directory, and its free space",
            1,
        ) from None
    return show(f"enabled for {written.described} of {sys.prefix}\n")


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Return the options with their values, and the names of commands."""
    options: list[str] = []
    commands: list[str] = []
    rest = words[::-1]
    while rest:
        word = rest.pop()
        if word == "--":
            commands += rest[::-1]
            break
        if not word.startswith("-"):
            commands.append(word)
            continue
        name, mark, _ = word.partition("=")
        if name not in _OPTIONS:
            raise CommandError(f"unknown option {name}, in `unsnarl enable`", _HELP)
        options.append(word)
        if name in _WITH_VALUE and not mark:
            if not rest:
                raise CommandError(f"option {name} lacks its value, in `unsnarl enable`", _HELP)
            options.append(rest.pop())
    return options, list(dict.fromkeys(commands))


def _joined(
    earlier: enablement.Enablement | None, options: list[str], commands: list[str]
) -> tuple[list[str], list[str]]:
    """Add commands to those that are enabled; new options are for all of them, without any the earlier ones stay."""
    if earlier is None:
        return options, commands
    options = options or earlier.options
    if not commands:
        return options, []
    if not earlier.commands:
        raise CommandError(
            "this environment is enabled for every program already",
            "to enable only some commands, run `unsnarl disable` first",
            1,
        )
    return options, list(dict.fromkeys([*earlier.commands, *commands]))


def settings_of(options: list[str]) -> RunSettings:
    """Return the settings that the options stand for, for the first process that reads them.

    Raises:
        CommandError: an option has an invalid value.
    """
    # A target is part of the grammar of `unsnarl run`; here, `-` stands for it.
    request = parse_for("enable", [*options, "-"], lambda _name, _value, _rest: False)
    return RunSettings(
        slice_ms=request.slice_ms,
        batch_share=request.batch_share,
        kernel_hints=request.kernel_hints,
        patch=request.patch,
        main_pid=0,
    )


def _check(name: str) -> None:
    """Refuse a name that no program of this environment can have: it would be a silent mistake."""
    if not name or not name.isprintable():
        raise CommandError(f"no program is named {name!r}, in `unsnarl enable`", "check the variable it came from")
    if "/" in name:
        raise CommandError(
            f"a command is named without its directory, not {name!r}, in `unsnarl enable`",
            f"for example `unsnarl enable {os.path.basename(name) or 'gunicorn'}`",
        )
    if _PYTHON_NAME.fullmatch(name):
        raise CommandError(f"{name!r} names no program, in `unsnarl enable`", "leave it out to enable every program")
    if name == "unsnarl" or name.startswith("unsnarl."):
        raise CommandError("commands of unsnarl itself are never enabled", "name the program, or none for all")
    if name.endswith((".py", ".pyz")) or _is_module(name):
        return
    _check_script(name)


def _check_script(name: str) -> None:
    from unsnarl.cli.program import console_script

    path = os.path.join(sysconfig.get_path("scripts"), name)
    if not os.path.isfile(path):
        raise CommandError(
            f"no command or module {name!r} in {sys.prefix}",
            "check the spelling, or install it; a script is named with its suffix, as in `unsnarl enable manage.py`",
            NOT_FOUND,
        )
    try:
        interpreter = console_script.interpreter_of(path)
    except OSError as error:
        raise CommandError(f"cannot read {path}: {error.strerror}", "check its permissions", 1) from None
    if interpreter is None:
        raise CommandError(f"{path} is not a Python script", "only Python programs can be enabled", 1)


def _is_module(name: str) -> bool:
    top = name.partition(".")[0]
    return top.isidentifier() and PathFinder.find_spec(top) is not None


def _writable_directory() -> str:
    """Return the site-packages to write to; refuse what belongs to the operating system."""
    folder = enablement.directory()
    if folder is None:
        raise CommandError(
            f"{enablement.HOOK_FILE} is in no site-packages of {sys.prefix}",
            f"install unsnarl with `{sys.executable} -m pip install unsnarl`",
            1,
        )
    marker = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    if sys.prefix == sys.base_prefix and os.path.exists(marker):
        raise CommandError(
            f"{sys.prefix} belongs to the operating system, whose programs would be changed too",
            "install unsnarl into an environment of your program: `python -m venv .venv`",
            1,
        )
    return folder


def _check_scheduler() -> None:
    """Refuse an interpreter in which every program would print that it runs without the scheduler."""
    gil.check(sys.executable)
