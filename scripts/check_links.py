"""Checks that every relative link and picture in the project's Markdown leads to a file.

Does not follow links into the network. Prints each dead link as ``file:line: target``
and exits with 1 if there is one.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
ELSEWHERE = re.compile(r"^[a-z]+:")


def markdown_files() -> list[Path]:
    """Return the Markdown files that git tracks or would track."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in names.splitlines()]


def dead_links(file: Path) -> Iterator[str]:
    """Yield ``file:line: target`` for each link in ``file`` that leads to no file."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        for target in LINK.findall(line):
            if not ELSEWHERE.match(target) and not (file.parent / target).exists():
                yield f"{file.relative_to(ROOT)}:{number}: {target}"


def main() -> int:
    """Print the dead links; return the exit status."""
    files = [file for file in markdown_files() if file.exists()]
    dead = [line for file in files for line in dead_links(file)]
    for line in dead:
        print(f"error: dead link: {line}")
    print(f"{len(files)} Markdown files, {len(dead)} dead links")
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
