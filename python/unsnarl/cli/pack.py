"""``unsnarl pack``: the modules of a command in one file, and a launcher that starts with it."""

import os
import shlex

from unsnarl.cli.failure import NOT_FOUND, CommandError
from unsnarl.cli.result import show

_USAGE_TEXT = """\
usage: unsnarl pack CMD -o FILE [--launcher FILE] [--with "ARGS"]...

Run a Python command, note the modules it loads, and put their code into one
file. A program started with it neither looks for those modules nor opens them.

  -o FILE              the pack to write
  --launcher FILE      the program to write that starts CMD with it (FILE of -o
                       without its suffix, if not given)
  --with "ARGS"        arguments for a recording run; may be repeated
                       (default: one run with --version)
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl pack`` and carry them out."""
    if not arguments or arguments[0] in ("-h", "--help"):
        return show(_USAGE_TEXT)
    name, out, start, runs = _parse(arguments)
    return _pack(name, os.path.abspath(out), start, runs or [["--version"]])


def _parse(arguments: list[str]) -> tuple[str, str, str, list[list[str]]]:
    name = out = start = ""
    runs: list[list[str]] = []
    words = iter(arguments)
    for word in words:
        if word in ("-o", "--launcher", "--with"):
            value = next(words, None)
            if value is None:
                raise CommandError(f"{word} needs a value, in `unsnarl pack`", "see `unsnarl pack --help`")
            if word == "--with":
                runs.append(shlex.split(value))
            elif word == "-o":
                out = value
            else:
                start = value
        elif word.startswith("-") or name:
            raise CommandError(f"unexpected argument {word!r}, in `unsnarl pack`", "see `unsnarl pack --help`")
        else:
            name = word
    if not name or not out:
        raise CommandError("a command and -o FILE are needed, in `unsnarl pack`", "unsnarl pack hg -o hg.pack")
    return name, out, start or os.path.splitext(out)[0], runs


def _pack(name: str, out: str, start: str, runs: list[list[str]]) -> int:
    import sys

    from unsnarl.cli import console_script
    from unsnarl.pack import recorder
    from unsnarl.warm import shims

    script = os.path.abspath(name) if "/" in name else shims.find_plain(name)
    if script is None or not os.path.isfile(script):
        raise CommandError(f"no command named {name!r} on PATH", "activate its environment first", NOT_FOUND)
    interpreter = console_script.interpreter_of(script)
    if interpreter is None:
        raise CommandError(f"{script} is not a Python script", "only Python commands can be packed", 1)
    if not os.path.samefile(interpreter.path, sys.executable):
        raise CommandError(
            f"{script} runs on {interpreter.path}, unsnarl on {sys.executable}", "install unsnarl beside the command", 1
        )
    try:
        modules = recorder.record(interpreter.path, interpreter.flags, script, runs)
        data = recorder.build(modules)
        recorder.store(data, out)
        recorder.store(recorder.launcher(interpreter.path, interpreter.flags, script, out).encode(), start)
        os.chmod(start, 0o755)
    except recorder.RecordError as problem:
        raise CommandError(problem.what, problem.hint, 1) from None
    except OSError as problem:
        raise CommandError(f"{problem.filename}: {problem.strerror}", "choose another place", 1) from None
    return show(f"{out}: {len(modules)} modules, {len(data) / 1e6:.1f} MB; started by {start}\n")
