"""Interface of the measuring programs: their common arguments, and the line of JSON that each prints."""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
from typing import Any

from unsnarl.demo.variant import STOCK, UNSNARL, VARIANTS, enter


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the arguments common to every program."""
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


def begin(arguments: argparse.Namespace) -> None:
    """Set this process up for its variant; a program calls it first."""
    enter(arguments.variant, arguments.options)


def reset_stats(arguments: argparse.Namespace) -> None:
    """Reset the scheduler's statistics, if the scheduler is installed."""
    if arguments.variant == UNSNARL:
        from unsnarl import gil

        gil.reset_stats()


def stats(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """Return the scheduler's statistics as plain data, classes by name; None without a scheduler."""
    if arguments.variant != UNSNARL:
        return None
    from unsnarl import gil

    account = dataclasses.asdict(gil.stats())
    return account | {"classes": {entry["name"]: entry for entry in account["classes"]}}


def print_line(
    bench: str,
    arguments: argparse.Namespace,
    parameters: dict[str, Any],
    figures: dict[str, Any],
    gil: dict[str, Any] | None = None,
) -> None:
    """Print one run as one line of JSON on stdout."""
    line = {
        "bench": bench,
        "variant": arguments.variant,
        "options": arguments.options,
        "parameters": parameters,
        "figures": figures,
        "gil": gil,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }
    print(json.dumps(line, default=str), flush=True)
