"""The first and last steps of every measured program: options, set-up, figures, exit.

The programs of this directory import it by path, in any Python from 3.8 on, PyPy included.
Invariant: only the standard library is imported, except by ``--library``.
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
    """Apply the options to this process; return the library whose primitives the program uses."""
    if arguments.switch_interval is not None:
        sys.setswitchinterval(arguments.switch_interval)
    library = importlib.import_module(arguments.library)
    if arguments.library == "unsnarl":
        library.patch()  # for the standard library's own uses, such as Thread.start
    return library


def use_small_stacks() -> None:
    """Give all threads started from now on small stacks."""
    threading.stack_size(SMALL_STACK_BYTES)


def acquirer(primitive: Any) -> Any:
    """Return the function that acquires in a thread, under the library's name for it."""
    return getattr(primitive, "green_acquire", None) or primitive.acquire


def print_figures(**figures: Any) -> None:
    """Print the figures."""
    print(json.dumps(figures), flush=True)


def leave() -> None:
    """Exit without waiting for the remaining threads, which are not measured."""
    sys.stdout.flush()
    os._exit(0)
