"""Checks that the built site documents every public name: run after MkDocs, on what it wrote.

    python scripts/documentation/undocumented.py SITE

The public names are those in `__all__` of each public module, and the public members of its classes. MkDocs leaves out
a name without a docstring, and `objects.inv` of the site lists those that are there. Prints each missing name, and
exits with 1 if there is one.
Invariant: a name of the standard library, and an inherited member, need no entry of their own.
"""

from __future__ import annotations

import inspect
import sys
import zlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from pages import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = "unsnarl"
HEADER_LINES = 4


def documented(site: Path) -> set[str]:
    """Return the names in the site's inventory, which is Sphinx's format: four lines, then compressed lines."""
    body = (site / "objects.inv").read_bytes().split(b"\n", HEADER_LINES)[HEADER_LINES]
    return {line.split(" ")[0] for line in zlib.decompress(body).decode().splitlines()}


def public(module: str) -> Iterator[str]:
    """Yield the dotted public names of a module, and of the members that its classes define."""
    running = import_module(module)
    for name in running.__all__:
        value = getattr(running, name)
        if not getattr(value, "__module__", PACKAGE).startswith(PACKAGE):
            continue
        yield f"{module}.{name}"
        if inspect.isclass(value) and value.__name__ == name:
            yield from (f"{module}.{name}.{member}" for member in members(value))


def members(documented_class: type) -> Iterator[str]:
    """Yield the public members that a class defines, but for the fields that its docstring describes."""
    for member in vars(documented_class):
        if not member.startswith("_") and f" {member}: " not in (documented_class.__doc__ or ""):
            yield member


def main(site: Path) -> int:
    """Print the names that are missing; return the exit status."""
    there = documented(site)
    names = [name for module in MODULES for name in public(module)]
    missing = [name for name in names if name not in there]
    for name in missing:
        print(f"error: not documented: {name}")
    print(f"{len(names)} public names, {len(missing)} without a docstring")
    return 1 if missing or not names else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
