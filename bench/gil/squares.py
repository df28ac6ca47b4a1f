"""The laboratory's square programs, with the scheduler's own account in addition to the elapsed time.

The three programs are ``unsnarl.lab.programs.square_programs``, here with the standard library's primitives.
Kept results call ``semaphore`` by its earlier name ``wakeup``, and so does the option ``--program``.
"""

from __future__ import annotations

import os
import sys
import threading

from bench import run
from unsnarl.lab.programs import square_programs

SMALL_STACK_BYTES = 256 * 1024
"""For thousands of threads: the default of 8 MiB each would only measure mappings."""

PROGRAMS = {
    "start": square_programs.start,
    "mutex": square_programs.mutex,
    "wakeup": square_programs.semaphore,
}
"""By the names that kept results have for them."""


def main() -> None:
    """Run one program once and print its elapsed time."""
    parser = run.parser(__doc__ or "")
    parser.add_argument("--program", choices=tuple(PROGRAMS), default="start")
    parser.add_argument("-n", "--threads", type=int, default=400)
    arguments = parser.parse_args()
    threading.stack_size(SMALL_STACK_BYTES)
    run.begin(arguments)
    elapsed_s = PROGRAMS[arguments.program](threading, arguments.threads)
    parameters = {"program": arguments.program, "threads": arguments.threads}
    run.print_line("squares", arguments, parameters, {"elapsed_s": elapsed_s}, run.stats(arguments))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
