"""The command ``unsnarl``: dispatches to a verb, and ends every command in one place.

Each verb is a module of this package with ``main(arguments) -> int``, which parses, calls, and raises
``CommandError`` for every failure that the user can cause. ``main`` below turns failures, Ctrl-C, other
signals and a broken pipe into the exit status or signal that a shell expects, never into a traceback.

Invariant: ``unsnarl run`` imports only what it uses, since it delays the program's start. Verbs are
therefore imported by name when they are called.
"""

import sys

from unsnarl.cli.failure import CommandError, Ended, removed_directory
from unsnarl.cli.result import discard, flush, show

VERBS = {
    "run": "run a Python program with the GIL scheduler",
    "enable": "switch it on for every program of this environment, or for some",
    "disable": "switch it off again, and leave no trace",
    "status": "show what is enabled",
    "demo": "measure the effect on a threaded web server on this machine",
    "lab": "repeat the experiments behind unsnarl",
    "trace": "record a program and show where its time went",
    "doctor": "measure what would make a command faster",
    "ipc": "list or remove shared memory segments that have a name",
    "cluster": "list or break locks that processes on several machines share",
    "warm": "run Python commands from a process that has already imported them",
    "pack": "store the modules of a command in one file, for a faster cold start",
    "gil": "check whether the scheduler can be installed in this interpreter",
}
"""Every verb by the name of its module, with a description."""

_USAGE_TEXT = """\
usage: unsnarl VERB [OPTIONS...]

A scheduler for the GIL of a stock CPython: a thread that has waited for I/O or
for a lock runs promptly, even next to CPU-bound threads.

verbs:
{verbs}

  unsnarl VERB --help    the options of a verb
  unsnarl --version      the version of unsnarl

UNSNARL=off in the environment disables all of it.
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the command with ``sys.argv``, or with ``arguments``, and return its exit status."""
    try:
        status = _dispatch(sys.argv[1:] if arguments is None else arguments)
        flush()
    except CommandError as failure:
        return _print_failure(failure)
    except KeyboardInterrupt:
        return _die_of("SIGINT")
    except Ended as end:
        return _die_of(end.signal_name)
    except BrokenPipeError:
        return _die_of("SIGPIPE")
    except FileNotFoundError:
        failure_there = removed_directory()
        if failure_there is None:
            raise
        return _print_failure(failure_there)
    return status


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        raise CommandError("no verb given", "see `unsnarl --help`; `unsnarl run app.py` runs a program")
    verb, *rest = arguments
    if verb in VERBS:
        if sys.implementation.name != "cpython":
            _refuse(verb)
        module = __import__(f"unsnarl.cli.{verb}", fromlist=["main"])
        return int(module.main(rest))
    if verb in ("-h", "--help"):
        return show(_USAGE_TEXT.format(verbs=_verb_lines()))
    if verb in ("-V", "--version"):
        from unsnarl import __version__

        return show(f"unsnarl {__version__}\n")
    raise CommandError(f"no such verb: {verb!r}", _verb_hint(verb))


def _refuse(verb: str) -> None:
    from unsnarl import interpreter

    what = f"this is {interpreter.description()}: {interpreter.REASONS[verb]}"
    raise CommandError(what, interpreter.HINT, 1)


def _verb_lines() -> str:
    width = max(map(len, VERBS))
    return "\n".join(f"  {verb:<{width}}  {purpose}" for verb, purpose in VERBS.items())


def _verb_hint(word: str) -> str:
    """Return a hint for a word that is no verb: an option, a program, or a misspelled verb."""
    if word.startswith("-"):
        return "options of a verb come after it; see `unsnarl --help`"
    if "/" in word or word.endswith((".py", ".pyz")):
        return f"to run it: `unsnarl run {word}`"
    from difflib import get_close_matches

    close = get_close_matches(word, VERBS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the verbs are: {', '.join(VERBS)}"


def _print_failure(failure: CommandError) -> int:
    """Print the failure on stderr, if there is a stderr, and return its status."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"{failure}\n")
        except (OSError, ValueError):
            return failure.status
    return failure.status


def _die_of(name: str) -> int:
    """End by the signal itself, so that a shell or a supervisor sees the cause.

    If the signal is blocked, returns the status that a shell would show for it.
    """
    import os
    import signal

    number = signal.Signals[name]
    discard()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
