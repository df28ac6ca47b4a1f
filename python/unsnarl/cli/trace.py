"""``unsnarl trace``: parse, check what can be checked before the program runs, trace, report.

The program's status is the command's; the summary goes to stderr, as stdout is the
program's. What fails on our side after the program has begun is said, and changes
nothing of that.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from unsnarl.cli.failure import CommandError, one_line
from unsnarl.cli.program.launch import HOOK_FILE, environment_as_given, is_hooked, launch
from unsnarl.cli.program.target import python_words
from unsnarl.cli.result import show
from unsnarl.cli.tracing.arguments import TraceRequest, parse
from unsnarl.run_settings import RunSettings, is_switched_off

if TYPE_CHECKING:
    from unsnarl.cli.program.arguments import RunRequest
    from unsnarl.trace.report import Report
    from unsnarl.trace.running.session import Session
    from unsnarl.trace.running.supervisor import Ending

_USAGE_TEXT = """\
usage: unsnarl trace [OPTIONS...] [PYTHON'S OPTIONS...] TARGET [ARGUMENTS...]
       unsnarl trace [OPTIONS...] --attach PID
       unsnarl trace [OPTIONS...] --read DIRECTORY|FILE

Run a program as `python TARGET ARGUMENTS...` does, record what its threads do with
the GIL and with locks, and write trace.html, trace.json and a summary.

targets: as for `unsnarl run`

options:
  --output FILE.html     the report (default trace.html); the trace for
                         ui.perfetto.dev goes beside it, as FILE.json
  --data FILE            write the summary as JSON, too
  --collapsed FILE       write the stacks for flame graphs, too
  --scheduler            under the GIL scheduler (default: as the interpreter does it)
  --patch                with native primitives, as `unsnarl run --patch`
  --syscalls             count system calls with strace, which slows the program down
  --no-children          only the program's first process
  --size MB              room for records of the first process (default 32); when it
                         is used up, newer records take the place of older ones
  --keep                 keep the recordings, for --read
  --seconds N            how long to look at a running process (default 5)
  -h, --help             this text

The summary goes to stderr; stdout, exit status and signals are the program's.
UNSNARL=off in the environment runs the plain program.
"""

MARGIN_BYTES = 16 << 20
"""Room on the disk for the reports, beside the recording."""


def main(arguments: list[str]) -> int:
    """Carry ``unsnarl trace ARGUMENTS`` out; with a program, this does not return.

    Raises:
        CommandError: the command line makes no sense, the target cannot be run, or
            there is no place for the trace.
    """
    request = parse(arguments)
    if request.wants_help:
        return show(_USAGE_TEXT)
    if request.read is not None:
        return report_on(request, request.read)
    if request.attach is not None:
        from unsnarl.cli.tracing.attach import attach

        return attach(request)
    return _trace(request)


def _trace(request: TraceRequest) -> NoReturn:
    run = request.run
    words = python_words(run)
    if is_switched_off():
        launch(words, RunSettings())
    if not is_hooked(not run.python_flags & set("Is")):
        raise CommandError(
            f"the program cannot be traced: {HOOK_FILE} is in no site-packages it reads",
            f"install unsnarl with `{sys.executable} -m pip install unsnarl`",
            1,
        )
    check_places(request)
    import signal

    from unsnarl.trace.running.supervisor import end_as

    session = _session(request, run)
    ending = _run(session, words)
    is_settled = _report(request, session, ending)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is short, and ends with the program's status
    if request.keep or not is_settled:
        say_kept(session.directory)
    else:
        session.remove()
    end_as(ending.status)


def _report(request: TraceRequest, session: Session, ending: Ending) -> bool:
    """Report whatever happens, and return False if there is still a report to be made."""
    try:
        return report_on_session(request, session, ending)
    except KeyboardInterrupt:
        _say("the report was interrupted")
        return True
    except Exception as error:  # noqa: BLE001 -- whatever it is, the program's status is the command's
        _say(f"the report failed: {type(error).__name__}: {error}")
        return False


def check_places(request: TraceRequest) -> None:
    """Fail now rather than when the program has run if something cannot be written.

    Raises:
        CommandError: it cannot; the status is 1.
    """
    from unsnarl.trace.running.session import free_bytes

    for path in (request.output, request.json_output, request.data, request.collapsed):
        if path is not None:
            _check_place(path)
    needed = (request.size_mb << 20) + MARGIN_BYTES
    try:
        room = free_bytes(request.output.parent)
    except OSError as error:
        raise no_place(request.output.parent, error) from None
    if room < needed:
        raise CommandError(
            f"no room for a trace in {str(request.output.parent.absolute())!r}: {room >> 20} MiB are free",
            f"a trace needs {needed >> 20} MiB: name another place with `--output`, or less with `--size`",
            1,
        )


def _check_place(path: Path) -> None:
    try:
        mode, folder_mode = _mode(path), _mode(path.parent)
    except OSError as error:
        raise _unwritable(path, error) from None
    if mode is not None and stat.S_ISDIR(mode):
        raise CommandError(f"cannot write {str(path)!r}: it is a directory", "name a file: `--output trace.html`", 1)
    if folder_mode is None or not stat.S_ISDIR(folder_mode):
        raise CommandError(
            f"cannot write {str(path)!r}: there is no such directory", f"make it: `mkdir -p {path.parent}`", 1
        )
    if not os.access(path.parent if mode is None else path, os.W_OK):
        raise CommandError(f"cannot write {str(path)!r}: permission denied", "name another place with `--output`", 1)


def _mode(path: Path) -> int | None:
    """Return the mode of a file, or None if there is none; raises OSError where that cannot be told."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _unwritable(path: Path, error: OSError) -> CommandError:
    why = error.strerror or str(error)
    return CommandError(f"cannot write {str(path)!r}: {why}", "name another place with `--output`", 1)


def _session(request: TraceRequest, run: RunRequest) -> Session:
    from unsnarl.trace.running.session import Options, Session

    options = Options(request.size_mb, request.scheduler, run.patch, run.children, request.syscalls)
    try:
        return Session(request.output.parent, options)
    except OSError as error:
        raise no_place(request.output.parent, error) from None


def no_place(beside: Path, error: OSError) -> CommandError:
    """Return the complaint about a directory where no recordings can be put."""
    what = f"cannot record in {str(beside.absolute())!r}: {error.strerror or error}"
    return CommandError(what, "name another place with `--output`", 1)


def _run(session: Session, words: list[str]) -> Ending:
    try:
        return session.run(words, environment_as_given())
    except OSError as error:
        session.remove()
        raise CommandError(
            f"cannot execute {sys.executable}: {error.strerror}",
            "check the interpreter, and the arguments' length",
            126,
        ) from None


def report_on_session(request: TraceRequest, session: Session, ending: Ending) -> bool:
    """Write the report of a traced run; say what fails, and return False if there is still one to be made."""
    from unsnarl.trace import report
    from unsnarl.trace.recordings import UnreadableTrace

    try:
        found, calls = session.read(ending)
    except UnreadableTrace:
        _say("nothing was recorded: the program ended, or became another one, before its first line")
        return True
    made = report.make(found.processes, calls)
    for name, reason in found.unreadable:
        _say(f"left out: {name}: {reason}")
    if found.untraced:
        _say(f"{found.untraced} processes were not recorded, for want of room")
    is_written = True
    try:
        write_all(request, made)
    except CommandError as failure:
        _say(str(failure).replace("\n", " · "))
        is_written = False
    _tell(made)
    return is_written


def say_kept(directory: Path) -> None:
    """Say where recordings are left, and what they are good for."""
    import shlex

    _say(f"recordings: {directory}; `unsnarl trace --read {shlex.quote(str(directory))}` makes a report of them")


def report_on(request: TraceRequest, path: Path) -> int:
    """Report on recordings made earlier."""
    from unsnarl.trace import recordings, report

    try:
        found = recordings.read(path)
    except recordings.UnreadableTrace as error:
        raise CommandError(error.reason, error.hint, 1) from None
    made = report.make(found.processes)
    for name, reason in found.unreadable:
        _say(f"left out: {name}: {reason}")
    write_all(request, made)
    _tell(made)
    return 0


def write_all(request: TraceRequest, made: Report) -> None:
    """Write what the request asks for, and say where it is.

    Raises:
        CommandError: something cannot be written.
    """
    writers = (
        (request.output, made.write_page),
        (request.json_output, made.write_chrome),
        (request.data, made.write_data),
        (request.collapsed, made.write_collapsed),
    )
    for path, writer in writers:
        if path is not None:
            try:
                writer(path)
            except OSError as error:
                raise _unwritable(path, error) from None
    _say(f"report: {request.output}   trace for ui.perfetto.dev: {request.json_output}")


def _tell(made: Report) -> None:
    if sys.stderr is not None:
        try:
            sys.stderr.write("\n" + made.text(_columns()))
        except (OSError, ValueError):
            return


def _columns() -> int | None:
    """Return the width of stderr's terminal, or None where there is none or it is to stay plain."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stderr.isatty():
        return None
    return os.get_terminal_size(sys.stderr.fileno()).columns or 80


def _say(line: str) -> None:
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"unsnarl: {one_line(line)}\n")
        except (OSError, ValueError):
            return
