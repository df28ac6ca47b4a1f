"""What every measured program does first and last: its options, its figures.

Imported by the programs beside it, by every Python 3.8 or later, PyPy among them.
Invariant: nothing but the standard library is imported, unless ``--library`` says so.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import threading
from typing import Any

SMALL_STACK_BYTES = 256 * 1024
"""For many threads: the default of 8 MiB each would only measure mappings."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser that knows the options of every program."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--library", default="threading", metavar="MODULE", help="whose primitives are used")
    made.add_argument("--switch-interval", type=float, metavar="SECONDS")
    return made


def begin(arguments: argparse.Namespace) -> Any:
    """Set this process up; return the library whose primitives the program is to use."""
    if arguments.switch_interval is not None:
        sys.setswitchinterval(arguments.switch_interval)
    library = importlib.import_module(arguments.library)
    if arguments.library == "unsnarl":
        library.patch()  # the standard library's own use of them, as in Thread.start
    return library


def use_small_stacks() -> None:
    """Give threads that are started from now on small stacks."""
    threading.stack_size(SMALL_STACK_BYTES)


def acquirer(primitive: Any) -> Any:
    """Return the function that acquires in a thread, whatever the library calls it."""
    return getattr(primitive, "green_acquire", None) or primitive.acquire


def print_figures(**figures: Any) -> None:
    """Print the figures."""
    print(json.dumps(figures), flush=True)


def leave() -> None:
    """End at once: threads that still run are not what is measured."""
    sys.stdout.flush()
    os._exit(0)
