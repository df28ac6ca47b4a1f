"""The command ``unsnarl``: picks the verb, and is the one place where a command ends.

Each verb is a module here with ``main(arguments) -> int``, which parses, calls,
and raises ``CommandError`` for whatever the user can cause. ``main`` below turns
failures, Ctrl-C, other signals and a broken pipe into what a shell expects, never into a
traceback.

``unsnarl run`` stands between the user and the program, so nothing on its way
may import more than it uses: verbs are imported by name, when asked for.
"""

import sys

from unsnarl.cli.failure import CommandError, Ended
from unsnarl.cli.result import discard, flush, show

VERBS = {
    "run": "run a Python program with the GIL scheduler",
    "demo": "show the effect on a threaded web server, here and now",
    "lab": "repeat the experiments that unsnarl comes from",
    "trace": "record a program and show where its time went",
    "doctor": "say what would make a command faster, by measuring it",
    "ipc": "list or remove the shared memory that processes share by name",
    "warm": "run Python commands from a process that has already imported them",
    "pack": "put the modules of a command into one file, for a faster cold start",
    "gil": "say whether the scheduler can be installed in this interpreter",
}
"""Every verb, which is the name of its module, and what it does."""

_USAGE_TEXT = """\
usage: unsnarl VERB [OPTIONS...]

A scheduler for the GIL of a stock CPython: threads that waited for I/O or for a
lock answer at once beside CPU-bound ones.

verbs:
{verbs}

  unsnarl VERB --help    the options of a verb
  unsnarl --version      the version of unsnarl

UNSNARL=off in the environment makes all of it step aside.
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
    return status


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        raise CommandError("no verb given", "see `unsnarl --help`; `unsnarl run app.py` runs a program")
    verb, *rest = arguments
    if verb in VERBS:
        module = __import__(f"unsnarl.cli.{verb}", fromlist=["main"])
        return int(module.main(rest))
    if verb in ("-h", "--help"):
        return show(_USAGE_TEXT.format(verbs=_verb_lines()))
    if verb in ("-V", "--version"):
        from unsnarl import __version__

        return show(f"unsnarl {__version__}\n")
    raise CommandError(f"no such verb: {verb!r}", _verb_hint(verb))


def _verb_lines() -> str:
    width = max(map(len, VERBS))
    return "\n".join(f"  {verb:<{width}}  {purpose}" for verb, purpose in VERBS.items())


def _verb_hint(word: str) -> str:
    """Guess what was meant: an option, a program, or a verb with a slip of the finger."""
    if word.startswith("-"):
        return "options of a verb come after it; see `unsnarl --help`"
    if "/" in word or word.endswith((".py", ".pyz")):
        return f"to run it: `unsnarl run {word}`"
    from difflib import get_close_matches

    close = get_close_matches(word, VERBS, n=1)
    return f"did you mean {close[0]!r}?" if close else f"the verbs are: {', '.join(VERBS)}"


def _print_failure(failure: CommandError) -> int:
    """Print the failure on stderr, if there is one, and return its status."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"{failure}\n")
        except (OSError, ValueError):
            return failure.status
    return failure.status


def _die_of(name: str) -> int:
    """End by the signal itself, so that a shell or a supervisor sees what happened.

    Returns the status a shell would show for it, should the signal be blocked.
    """
    import os
    import signal

    number = signal.Signals[name]
    discard()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 128 + number
