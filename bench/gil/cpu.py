"""k CPU-bound threads alone: their total work, and how evenly it is shared.

The main thread sleeps during the window, so only hogs request the GIL.
"""

from __future__ import annotations

import os
import threading

from bench import run
from unsnarl.demo.hogs import Hogs, jain, rates


def main() -> None:
    """Measure one window and print it."""
    parser = run.parser(__doc__ or "")
    parser.add_argument("-k", "--hogs", type=int, default=4, metavar="K", help="CPU-bound threads")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--warmup", type=float, default=0.5)
    arguments = parser.parse_args()
    run.begin(arguments)
    hogs = Hogs(arguments.hogs)
    never = threading.Event()
    never.wait(arguments.warmup)
    run.reset_stats(arguments)
    begin = hogs.read()
    never.wait(arguments.seconds)
    end = hogs.read()
    gil = run.stats(arguments)
    work = rates(begin, end)
    figures = {"work_per_s": sum(work), "work_each_per_s": work, "jain": jain(work)}
    run.print_line("cpu", arguments, {"hogs": arguments.hogs}, figures, gil)
    os._exit(0)


if __name__ == "__main__":
    main()
