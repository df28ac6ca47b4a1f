"""``unsnarl trace``: parses, checks the outputs before the program runs, traces, and reports.

Invariant: the command ends with the program's status. The summary goes to stderr, since stdout belongs
to the program. A failure of the tracer after the program has started is reported and does not change
the status.
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
from unsnarl.free_threading import REASON, is_free_threaded
from unsnarl.run_settings import RunSettings, is_switched_off

if TYPE_CHECKING:
    from unsnarl.cli.program.arguments import RunRequest
    from unsnarl.trace.running.session import Session
    from unsnarl.trace.running.supervisor import Ending

_USAGE_TEXT = """\
usage: unsnarl trace [OPTIONS...] [PYTHON'S OPTIONS...] TARGET [ARGUMENTS...]
       unsnarl trace [OPTIONS...] --attach PID
       unsnarl trace [OPTIONS...] --read DIRECTORY|FILE
       unsnarl trace [OPTIONS...] --compare A B

Run a program as `python TARGET ARGUMENTS...` does, record how its threads use
the GIL and locks, and write trace.html, trace.json and a summary.

targets: as for `unsnarl run`

options:
  --output FILE.html     the report (default trace.html); the trace for
                         ui.perfetto.dev is written next to it, as FILE.json
  --data FILE            also write the summary as JSON
  --collapsed FILE       also write the stacks for flame graphs
  --scheduler            use the GIL scheduler (default: the interpreter's own)
  --patch                use native primitives, as `unsnarl run --patch`
  --syscalls             count system calls with strace, which slows the
                         program down
  --no-children          record only the program's first process
  --size MB              room for records of the first process (default 32);
                         when it is full, newer records replace older ones
  --keep                 keep the recordings, for --read and --compare
  --compare A B          say what got better and worse from recording A to
                         recording B, on stdout, and write comparison.html
                         (or --output); --data FILE writes it as JSON
  --seconds N            how long to record a running process (default 5)
  -h, --help             this text

The summary goes to stderr; stdout, exit status and signals are the program's.
UNSNARL=off in the environment runs the plain program.
"""


def main(arguments: list[str]) -> int:
    """Carry out ``unsnarl trace ARGUMENTS``; with a program, this does not return.

    Raises:
        CommandError: the command line is invalid, the target cannot be run, or the
            trace cannot be written.
    """
    request = parse(arguments)
    if request.wants_help:
        return show(_USAGE_TEXT)
    if request.read is not None:
        return report_on(request, request.read)
    if request.compare is not None:
        from unsnarl.cli.tracing.comparing import compare

        return compare(request, *request.compare)
    if request.attach is not None:
        _require_gil(
            f"process {request.attach} cannot be recorded",
            "`faulthandler.dump_traceback_later` in the program shows where its threads are",
        )
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
    _require_gil("the program cannot be traced", "run it without `unsnarl trace`")
    import signal

    from unsnarl.trace.running.supervisor import end_as

    session = _session(request, run)
    ending = _run(session, words)
    is_reported = _report(request, session, ending)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the rest is short, and ends with the program's status
    if request.keep or not is_reported:
        say_kept(session.directory)
    else:
        session.remove()
    end_as(ending.status)


def _require_gil(failure: str, instead: str) -> None:
    """Refuse where no waits can be recorded; a process of another build could not be reached from here either."""
    if is_free_threaded():
        raise CommandError(f"{failure}: {REASON} whose waits could be recorded", instead, 1)


def _report(request: TraceRequest, session: Session, ending: Ending) -> bool:
    """Write the report and catch every failure; return False if the report has to be made later."""
    try:
        return report_on_session(request, session, ending)
    except KeyboardInterrupt:
        say("the report was interrupted")
        return True
    except Exception as error:  # noqa: BLE001 -- the command must end with the program's status
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
