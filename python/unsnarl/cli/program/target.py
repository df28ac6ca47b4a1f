"""Finds the target of ``unsnarl run``: a parsed request in, the words after ``python`` out.

A target that python would certainly refuse before the program's first line is refused here with a hint,
if this can be determined without running a part of the program. Everything else is left to python, with
its own messages and status.
"""

import importlib.machinery
import os
import sys

from unsnarl.cli.failure import NOT_EXECUTABLE, NOT_FOUND, USAGE, CommandError
from unsnarl.cli.program.arguments import CODE, COMMAND, MODULE, STDIN, RunRequest

# No from-import: it would first access the module's __path__, for which 3.14 imports warnings.
_PathFinder = importlib.machinery.PathFinder

REFUSED_BY_PYTHON = 1
"""The status with which python ends if there is no module to run."""

_SPELLING = "check the spelling, and `python -m pip list` for what is installed"


def python_words(request: RunRequest) -> list[str]:
    """Return the command line that runs the target, without the interpreter itself.

    Raises:
        CommandError: there is no such target, or it cannot be run; the status is the
            one that python or a shell uses.
    """
    if request.kind == MODULE:
        _check_module(request)
    if request.kind in (MODULE, CODE):
        return [*request.python_words, *request.arguments]
    if request.kind == STDIN:
        return [*request.python_words, "-", *request.arguments]
    script_words = _of_command(request) if request.kind == COMMAND else _of_file(request)
    # Options in a command's first line count as if they were given here.
    request.python_flags |= letters(script_words[:-1])
    return [*request.python_words, *script_words, *request.arguments]


def letters(options: list[str]) -> set[str]:
    """Return the one-letter options of python in some words, without the values of -W and -X."""
    found: set[str] = set()
    for option in options:
        if option.startswith("-") and not option.startswith("--"):
            for letter in option[1:]:
                found.add(letter)
                if letter in "WXcm":
                    break
    return found


def _of_file(request: RunRequest) -> list[str]:
    """Interpret the target as a file, or as a command if there is no such file."""
    target = request.target
    if _is_runnable(target) or "/" in target:
        return _checked_file(target)
    path = _find_command(target)
    if path is None and not os.path.lexists(target):
        raise CommandError(f"{target!r} is neither a file in {_here()!r} nor a command", _SPELLING, USAGE)
    return _checked_file(target) if path is None else _checked_script(path)


def _of_command(request: RunRequest) -> list[str]:
    """Interpret the target as a command, or as a file if there is no such command."""
    target = request.target
    path = None if "/" in target else _find_command(target)
    if path is not None:
        return _checked_script(path)
    if os.path.exists(target):
        return _checked_file(target)
    if "/" in target:
        raise CommandError(f"command not found: {target!r}", _file_hint(target), NOT_FOUND)
    raise CommandError(
        f"command not found: {target!r}, in this environment's scripts and in PATH",
        f"check that it is installed in {sys.prefix}; run a module by `unsnarl run -m {target}`",
        NOT_FOUND,
    )


def _find_command(name: str) -> str | None:
    from unsnarl.cli.program import console_script  # few programs are named as commands

    return console_script.find(name)


def _checked_script(path: str) -> list[str]:
    """Return the words for a command, after checking that it belongs to this environment."""
    from unsnarl.cli.program import console_script

    try:
        interpreter = console_script.interpreter_of(path)
    except OSError as error:
        raise CommandError(f"cannot read {path!r}: {error.strerror}", "check its permissions", NOT_EXECUTABLE) from None
    if interpreter is None:
        raise CommandError(f"{path!r} is not a Python script", _other_hint(path), NOT_EXECUTABLE)
    if not console_script.is_of_this_environment(interpreter.path):
        raise CommandError(
            f"{path!r} runs with {interpreter.path}, and unsnarl is installed for {sys.executable}",
            f"install unsnarl there: `{interpreter.path} -m pip install unsnarl`",
            NOT_EXECUTABLE,
        )
    if "S" in letters(interpreter.flags):
        raise CommandError(
            f"the first line of {path!r} has -S, which keeps unsnarl out of it",
            f"run it without that option: `unsnarl run {path}`",
            NOT_EXECUTABLE,
        )
    return [*interpreter.flags, path]


def _other_hint(path: str) -> str:
    if os.path.basename(path).startswith("python"):
        return "`unsnarl run` starts the interpreter itself: leave that word out, as in `unsnarl run app.py`"
    return "unsnarl schedules Python programs; run this one as it is"


def _checked_file(target: str) -> list[str]:
    """Return the words for a script, a directory or an archive, after checking that it opens."""
    _check_opens(target)
    importer = _importer(target)
    if importer is None and _is_executable_code(target):
        raise CommandError(f"{target!r} is not a Python script", _other_hint(target), NOT_EXECUTABLE)
    if importer is not None and _main_module(target) is None:
        what = "directory" if os.path.isdir(target) else "archive"
        raise CommandError(
            f"there is no __main__.py in the {what} {target!r}",
            f"name a file in it, or run a package with `unsnarl run -m {_module_name(target)}`",
            REFUSED_BY_PYTHON,
        )
    return ["--", target] if target.startswith("-") else [target]


def _check_opens(target: str) -> None:
    """Open and close a regular file; other files are only stat-ed, since opening a pipe has an effect."""
    try:
        if not os.path.isfile(target):
            os.stat(target)
        else:
            os.close(os.open(target, os.O_RDONLY | os.O_CLOEXEC))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise CommandError(f"cannot open {target!r}: {why}", _file_hint(target), USAGE) from None


def _is_executable_code(target: str) -> bool:
    """Tell whether a file is an ELF program, which python would read as text in an unknown encoding."""
    if not os.path.isfile(target):
        return False
    with open(target, "rb", buffering=0) as file:
        return file.read(4) == b"\x7fELF"


def _file_hint(target: str) -> str:
    if os.path.lexists(target):
        return "check its permissions, and its target if it is a link"
    if os.path.isabs(target):
        return _SPELLING
    return f"the path is relative to the current directory, {_here()!r}"


def _here() -> str:
    """Return the current directory in words; it may have been removed."""
    try:
        return os.getcwd()
    except OSError:
        return "a removed directory"


def _is_runnable(target: str) -> bool:
    """Tell whether a path is a file, or a directory that python could run, rather than a command."""
    return os.path.lexists(target) and (not os.path.isdir(target) or _main_module(target) is not None)


def _importer(target: str) -> object | None:
    """Return the importer that python would use for a directory or an archive, or None."""
    for hook in sys.path_hooks:
        try:
            return hook(target)
        except ImportError:
            continue
    return None


def _main_module(target: str) -> object | None:
    return _PathFinder.find_spec("__main__", [target])


def _module_name(target: str) -> str:
    return os.path.basename(os.path.abspath(target)).partition(".")[0]


def _check_module(request: RunRequest) -> None:
    """Refuse a module whose top-level name no finder knows.

    This must not run code of the program, so submodules, whose package would have to be imported,
    are left to python. So is every module if an option changes the module path.
    """
    if request.python_flags & set("EIPs") or os.environ.get("PYTHONSAFEPATH"):
        return
    top = request.target.partition(".")[0]
    if not top or _is_found(top):
        return
    raise CommandError(
        f"no module named {top!r}, installed in {sys.prefix!r} or in {_here()!r}",
        f"run a file without -m: `unsnarl run {request.target}`" if os.path.isfile(request.target) else _SPELLING,
        REFUSED_BY_PYTHON,
    )


def _is_found(top: str) -> bool:
    """Query the finders as python will, with the current directory as the script's directory."""
    if _PathFinder.find_spec(top, [_here()]) is not None:
        return True
    return any(finder.find_spec(top, None) is not None for finder in sys.meta_path)
