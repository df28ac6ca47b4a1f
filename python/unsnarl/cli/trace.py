"""``unsnarl trace``: parse, check what can be checked before the program runs, trace, report.

The program's status is the command's; the summary goes to stderr, as stdout is the
program's. What fails on our side after the program has begun is said, and changes
nothing of that.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from unsnarl.cli.failure import CommandError
from unsnarl.cli.program.launch import HOOK_FILE, environment_as_given, is_hooked, launch
from unsnarl.cli.program.target import python_words
from unsnarl.cli.result import show
from unsnarl.cli.tracing.arguments import TraceRequest, parse
from unsnarl.cli.tracing.outputs import cannot_record, check_writable
from unsnarl.cli.tracing.reporting import report_on, report_on_session, say, say_kept
from unsnarl.run_settings import RunSettings, is_switched_off

if TYPE_CHECKING:
    from unsnarl.cli.program.arguments import RunRequest
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
    check_writable(request)
    import signal

    from unsnarl.trace.running.supervisor import end_as

    session = _session(request, run)
    ending = _run(session, words)
    is_reported = _report(request, session, ending)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is short, and ends with the program's status
    if request.keep or not is_reported:
        say_kept(session.directory)
    else:
        session.remove()
    end_as(ending.status)


def _report(request: TraceRequest, session: Session, ending: Ending) -> bool:
    """Report whatever happens, and return False if there is still a report to be made."""
    try:
        return report_on_session(request, session, ending)
    except KeyboardInterrupt:
        say("the report was interrupted")
        return True
    except Exception as error:  # noqa: BLE001 -- whatever it is, the program's status is the command's
        say(f"the report failed: {type(error).__name__}: {error}")
        return False


def _session(request: TraceRequest, run: RunRequest) -> Session:
    from unsnarl.trace.running.session import Options, Session

    options = Options(request.size_mb, request.scheduler, run.patch, run.children, request.syscalls)
    try:
        return Session(request.output.parent, options)
    except OSError as error:
        raise cannot_record(request.output.parent, error) from None


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
