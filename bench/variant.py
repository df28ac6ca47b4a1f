"""The three ways a measured process is set up, and the line it prints about itself.

``stock`` leaves the interpreter alone, ``switchinterval`` sets the known
work-around (a short interval, with its cost for CPU-bound threads), ``unsnarl``
installs the scheduler. Invariant: nothing of unsnarl's scheduler is touched
unless the variant is ``unsnarl``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import sys
from typing import Any

STOCK, SWITCHINTERVAL, UNSNARL = "stock", "switchinterval", "unsnarl"
VARIANTS = (STOCK, SWITCHINTERVAL, UNSNARL)

SHORT_INTERVAL_S = 0.0005
"""Seconds; a tenth of CPython's default of 5 ms, the usual advice."""


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser that knows the arguments common to every program."""
    common = argparse.ArgumentParser(description=description)
    common.add_argument("--variant", choices=VARIANTS, default=STOCK)
    common.add_argument(
        "--options",
        type=json.loads,
        default={},
        metavar="JSON",
        help='keyword arguments of unsnarl.gil.install, as {"kernel_hints": false}',
    )
    return common


def apply(arguments: argparse.Namespace) -> None:
    """Set this process up as its variant says; the first act of a program."""
    if arguments.variant == SWITCHINTERVAL:
        sys.setswitchinterval(SHORT_INTERVAL_S)
    elif arguments.variant == UNSNARL:
        import unsnarl

        unsnarl.gil.install(**arguments.options)


def reset_stats(arguments: argparse.Namespace) -> None:
    """Begin the scheduler's own account anew, where there is a scheduler."""
    if arguments.variant == UNSNARL:
        import unsnarl

        unsnarl.gil.reset_stats()


def stats(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the scheduler's own account as plain data; None without a scheduler."""
    if arguments.variant != UNSNARL:
        return None
    import unsnarl

    account: Any = unsnarl.gil.stats()
    return dataclasses.asdict(account) if dataclasses.is_dataclass(account) else dict(account)  # type: ignore[arg-type]


def print_run(
    bench: str,
    arguments: argparse.Namespace,
    parameters: dict[str, Any],
    figures: dict[str, Any],
    gil: dict[str, Any] | None = None,
) -> None:
    """Print one run as one line of JSON on stdout."""
    run = {
        "bench": bench,
        "variant": arguments.variant,
        "options": arguments.options,
        "parameters": parameters,
        "figures": figures,
        "gil": gil,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    print(json.dumps(run, default=str), flush=True)
