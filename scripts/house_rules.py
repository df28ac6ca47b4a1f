"""Checks the rules of CONTRIBUTING.md that no linter knows.

Each rule is a function from the tracked files to complaints, ``file: what`` a line.
Exits with 1 if there is a complaint.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CODE_SUFFIXES = {".py", ".pyi", ".rs"}
MAX_LINES = 500
"""A file past this has two reasons to exist; the usual length is 100 to 400 lines."""

MAX_ARCHITECTURE_LINES = 200
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
FIRST_LINES = {
    ".py": re.compile(r'(#!.*\n)?r?"""\S'),
    ".pyi": re.compile(r'r?"""\S'),
    ".rs": re.compile(r"//! \S"),
}

Complaints = Iterator[str]


def tracked() -> list[Path]:
    """Return the files that git tracks or would track, relative to the project."""
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in names.split("\0") if name and (ROOT / name).is_file()]


def code(files: list[Path]) -> list[tuple[Path, str]]:
    """Return each source file that is not empty, with its text."""
    sources = [file for file in files if file.suffix in CODE_SUFFIXES]
    texts = [(file, (ROOT / file).read_text(encoding="utf-8")) for file in sources]
    return [(file, text) for file, text in texts if text.strip()]


def lengths(files: list[Path]) -> Complaints:
    """Keep files short enough to have one reason to exist."""
    for file, text in code(files):
        lines = text.count("\n")
        if lines > MAX_LINES:
            yield f"{file}: {lines} lines, more than {MAX_LINES}"


def headers(files: list[Path]) -> Complaints:
    """Have every file open with what it is."""
    for file, text in code(files):
        if not FIRST_LINES[file.suffix].match(text):
            yield f"{file}: does not open with what it is"


def names(files: list[Path]) -> Complaints:
    """Name files after nouns of the domain."""
    for file in files:
        if FORBIDDEN_NAMES.intersection(re.split(r"[_.-]", file.stem)):
            yield f"{file}: the name says nothing about the domain"


def finished(files: list[Path]) -> Complaints:
    """Leave nothing half-done behind a marker."""
    for file, text in code(files):
        if file == Path("scripts/house_rules.py"):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if UNFINISHED.search(line):
                yield f"{file}:{number}: unfinished"


def versions(_files: list[Path]) -> Complaints:
    """Give the crates and the distribution one version."""
    crates = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    distribution = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if crates != distribution:
        yield f"pyproject.toml: version {distribution}, but Cargo.toml has {crates}"


def architecture(_files: list[Path]) -> Complaints:
    """Keep ARCHITECTURE.md a map."""
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").count("\n")
    if lines >= MAX_ARCHITECTURE_LINES:
        yield f"ARCHITECTURE.md: {lines} lines, not under {MAX_ARCHITECTURE_LINES}"


RULES: list[Callable[[list[Path]], Complaints]] = [lengths, headers, names, finished, versions, architecture]


def main() -> int:
    """Print every complaint; return the exit status."""
    files = tracked()
    complaints = [complaint for rule in RULES for complaint in rule(files)]
    for complaint in complaints:
        print(f"error: {complaint}")
    print(f"{len(files)} files, {len(RULES)} rules, {len(complaints)} complaints")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
