"""``unsnarl run``: parses the command line, finds the target, and becomes the interpreter by exec."""

import os

from unsnarl.cli.program.arguments import RunRequest, parse
from unsnarl.cli.program.launch import launch
from unsnarl.cli.program.target import python_words
from unsnarl.cli.result import show
from unsnarl.run_settings import RunSettings, is_switched_off

_USAGE_TEXT = """\
usage: unsnarl run [OPTIONS...] [PYTHON'S OPTIONS...] TARGET [ARGUMENTS...]

Run a program as `python TARGET ARGUMENTS...` does, with the GIL scheduler.

targets:
  app.py                 a script, or a directory or zip file with __main__.py
  -m MODULE              a module
  -c CODE                a program given as text
  -                      a program read from stdin
  [--] COMMAND           a console script of this environment, such as gunicorn

options:
  --stats[=main|all]     print the scheduler's statistics on stderr at the end,
                         of the program's first process or of each process
  --metrics[=[HOST:]PORT]
                         answer with the figures of all processes at /metrics,
                         for Prometheus (default 127.0.0.1:9464)
  --patch                replace classes of threading and queue by native ones
                         (Condition, Semaphore, Event, Barrier, Queue and their
                         variants)
  --green                run the program's threads in user space, as greenlets
                         of one thread, without the scheduler; needs
                         unsnarl[green]
  --pack FILE            import modules from a file of `unsnarl pack`
  --no-children          only this process: its children have the stock GIL
  --slice MS             the slice of a CPU-bound thread, in milliseconds
                         (default: the interpreter's switch interval)
  --batch-share PERCENT  the least share of the GIL that CPU-bound threads keep
                         while others are busy, 0% to 90% (default: 20%)
  --no-kernel-hints      do not tell the kernel which threads are CPU-bound
  -h, --help             this text

Options of python before the target are passed on, except -S.
UNSNARL=off in the environment runs the plain program.
"""


def main(arguments: list[str]) -> int:
    """Run the program of ``unsnarl run ARGUMENTS``; on success this does not return.

    Raises:
        CommandError: the command line is invalid, or the target cannot be run.
    """
    request = parse(arguments)
    if request.wants_help:
        return show(_USAGE_TEXT)
    words = python_words(request)
    if request.green and not is_switched_off():
        from unsnarl.cli.program import green_target

        green_target.check(request)
    return launch(words, _settings(request), has_user_site=not request.python_flags & set("Is"))


def _settings(request: RunRequest) -> RunSettings:
    return RunSettings(
        slice_ms=request.slice_ms,
        batch_share=request.batch_share,
        kernel_hints=request.kernel_hints,
        children=request.children,
        stats=request.stats,
        patch=request.patch,
        green=request.green,
        metrics=request.metrics,
        pack=os.path.abspath(request.pack) if request.pack else "",
    )
