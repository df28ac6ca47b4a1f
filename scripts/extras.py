"""Prints the requirements of the named extras of pyproject.toml, one a line, for pip to install without unsnarl itself.

python scripts/extras.py NAME...
"""

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent


def main(names: list[str]) -> None:
    """Print the requirements of these extras."""
    with open(PROJECT / "pyproject.toml", "rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    for name in names:
        print(*extras[name], sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
