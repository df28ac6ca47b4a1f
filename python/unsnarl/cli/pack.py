"""``unsnarl pack``: records the modules of a command, and writes a pack and a launcher."""

import os
import shlex
import sys

from unsnarl.cli.failure import NOT_FOUND, CommandError, one_line
from unsnarl.cli.result import show, show_wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from unsnarl.pack.recorder import Program, Recording

_HEAD_BYTES = 16384
"""Enough for the first lines of a launcher, with two paths as long as Linux allows (PATH_MAX, 4096)."""

_USAGE_TEXT = """\
usage: unsnarl pack CMD|-m MODULE -o FILE [--launcher FILE] [--with "ARGS"]...
                    [--lazy] [--check files|directories]

Run a Python command, record the modules it loads, and store their code in one
file. A program started with it neither searches nor opens those modules.

  -m MODULE            a module, run as `python -m MODULE`, instead of a command
  -o FILE              the pack to write
  --launcher FILE      the program to write that starts CMD with it (FILE of -o
                       without its suffix, if not given)
  --with "ARGS"        arguments for a recording run; may be repeated
                       (default: one run with --version)
  --lazy               load a module on its first use instead of at its import,
                       if no recording run uses it and its body only binds
                       names; the recording runs are repeated to find out
  --check files        compare each packed file with its source (default)
  --check directories  compare the directories: this detects a source that is
                       replaced, added or removed, but not one written in place
"""


def main(arguments: list[str]) -> int:
    """Parse the arguments of ``unsnarl pack`` and carry them out."""
    if not arguments or arguments[0] in ("-h", "--help"):
        return show(_USAGE_TEXT)
    return _pack(_parse(arguments))


class _Words:
    """The parsed command line."""

    def __init__(self) -> None:
        self.name = self.module = self.out = self.start = ""
        self.runs: list[list[str]] = []
        self.check = "files"
        self.is_lazy = False


def _parse(arguments: list[str]) -> _Words:
    found = _Words()
    words = iter(arguments)
    for word in words:
        if word == "--lazy":
            found.is_lazy = True
        elif word in ("-m", "-o", "--launcher", "--with", "--check"):
            value = next(words, None)
            if value is None:
                raise CommandError(f"{word} needs a value, in `unsnarl pack`", "see `unsnarl pack --help`")
            if word == "--with":
                found.runs.append(_split(value))
            else:
                setattr(found, {"-m": "module", "-o": "out", "--check": "check"}.get(word, "start"), value)
        elif word.startswith("-") or found.name:
            raise CommandError(f"unexpected argument {word!r}, in `unsnarl pack`", "see `unsnarl pack --help`")
        else:
            found.name = word
    return _completed(found)


def _split(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as problem:
        raise CommandError(
            f"--with {value!r}: {problem}, in `unsnarl pack`", "quote it once for the command, and again for your shell"
        ) from None


def _completed(found: _Words) -> _Words:
    if bool(found.name) == bool(found.module) or not found.out:
        raise CommandError(
            "a command or -m MODULE, and -o FILE, are needed, in `unsnarl pack`", "unsnarl pack hg -o hg.pack"
        )
    if found.check not in ("files", "directories"):
        raise CommandError(f"--check knows no {found.check!r}, in `unsnarl pack`", "--check files, or directories")
    found.runs = found.runs or [["--version"]]
    found.out = os.path.abspath(found.out)
    found.start = found.start or os.path.splitext(found.out)[0]
    return found


def _program(words: _Words) -> "Program":
    import zipfile

    from unsnarl.cli.program import console_script
    from unsnarl.pack.recorder import Program

    if words.module:
        return Program(sys.executable, [], "module", words.module)
    script = _script_of(words.name)
    interpreter = console_script.interpreter_of(script)
    if interpreter is None and _is_source(words.name):
        return Program(sys.executable, [], "script", script)
    if interpreter is None:
        raise CommandError(*console_script.no_python(script, "only Python commands can be packed"), 1)
    if not console_script.is_of_this_environment(interpreter.path):
        raise CommandError(
            f"{script} runs on {interpreter.path}, unsnarl on {sys.executable}",
            "install unsnarl in the command's environment",
            1,
        )
    kind = "archive" if zipfile.is_zipfile(script) else "script"
    return Program(interpreter.path, interpreter.flags, kind, script)


def _script_of(name: str) -> str:
    """Return the path of a command or, as `unsnarl run` takes it, of a file."""
    import sysconfig

    from unsnarl.warm.managing import shims

    # Where `unsnarl run` searches first, regardless of PATH.
    own = os.path.join(sysconfig.get_path("scripts"), name)
    if "/" in name or _is_source(name):
        script: str | None = os.path.abspath(name)
    elif os.path.isfile(own) and os.access(own, os.X_OK) and not shims.is_shim(own):
        script = own
    else:
        script = shims.find_plain(name)
    if script is not None and os.path.isfile(script):
        return script
    if name.endswith(".py"):
        raise CommandError(f"there is no file {name!r} in {os.getcwd()!r}", "check the path", NOT_FOUND)
    raise CommandError(f"no command named {name!r} on PATH", "activate its environment first", NOT_FOUND)


def _is_source(name: str) -> bool:
    return name.endswith(".py") and os.path.isfile(name)


def _refuse_to_destroy(program: "Program", words: _Words) -> None:
    """Refuse to overwrite any file that is not a pack or a launcher of this command."""
    from unsnarl.pack import container, launcher

    if os.path.realpath(words.out) == os.path.realpath(words.start):
        raise CommandError(
            f"{words.out} would be both the pack and its launcher",
            "give -o a name with a suffix, such as .pack, or name the launcher with --launcher",
        )
    for path, mark, what, hint in (
        (words.out, container.MAGIC, "no pack", "give another name with -o, or move it away"),
        (words.start, launcher.MARK.encode(), "no launcher of a pack", "name the launcher with --launcher"),
    ):
        if program.kind != "module" and os.path.exists(path) and os.path.samefile(path, program.name):
            raise CommandError(f"{path} is the program that is to be packed", hint)
        if os.path.lexists(path) and not _has_mark(path, mark):
            raise CommandError(f"{path} exists and is {what}", hint, 1)


def _has_mark(path: str, mark: bytes) -> bool:
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    return not head or mark in head  # an empty file is a placeholder, as `mktemp` makes it


def _pack(words: _Words) -> int:
    from unsnarl.pack import launcher, recorder

    try:
        program = _program(words)
        _refuse_to_destroy(program, words)
        if program.kind == "archive" and words.is_lazy:  # what the modules inside of it guard by `try` is not read
            raise CommandError(f"{program.name} is an archive, and --lazy reads source files", "leave --lazy out", 1)
        start = launcher.text(program, words.out)
        recording, late = _learn(program, words)
        for doubt in recording.doubts:
            sys.stderr.write(f"warning: {one_line(doubt)}\n")
        data = recorder.build(
            recording.paths,
            late,
            by_directory=words.check == "directories",
            folder=os.path.dirname(os.path.realpath(program.name)) if program.kind == "script" else "",
            optimize=recording.optimize,
        )
        recorder.store(data, words.out)
        recorder.store(start, words.start, mode=0o755)
    except (recorder.RecordError, launcher.LauncherError) as problem:
        raise CommandError(problem.what, problem.hint, 1) from None
    except OSError as problem:
        raise CommandError(
            f"{problem.filename or words.out}: {problem.strerror or problem}", "choose another directory", 1
        ) from None
    loaded = f"{len(recording.paths)} modules" + (f" ({len(late)} of them late)" if words.is_lazy else "")
    return show_wrapped(one_line(f"{words.out}: {loaded}, {len(data) / 1e6:.1f} MB; started by {words.start}") + "\n")


def _learn(program: "Program", words: _Words) -> tuple["Recording", set[str]]:
    """Return the modules that the command loads, and those to be loaded late."""
    if not words.is_lazy:
        from unsnarl.pack import recorder

        return recorder.record(program, words.runs), set()
    from unsnarl.pack import learner

    recording, learned = learner.learn(program, words.runs)
    if learned.why:
        sys.stderr.write(f"warning: no module is loaded late: {one_line(learned.why)}\n")
    return recording, learned.late
