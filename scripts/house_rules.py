"""Checks the rules of CONTRIBUTING.md that no linter knows.

Each rule is a function from the tracked files to complaints, ``file: what`` a line.
Exits with 1 if there is a complaint.
"""

import ast
import fnmatch
import io
import re
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import rooms

ROOT = Path(__file__).resolve().parent.parent

CODE_SUFFIXES = {".py", ".pyi", ".rs"}
MAX_LINES = 500
"""A file past this has two reasons to exist; the usual length is 100 to 400 lines."""

MAX_ARCHITECTURE_LINES = 200
RESULTS = Path("docs/results")
FORBIDDEN_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
FIRST_LINES = {
    ".py": re.compile(r'(#!.*\n)?r?"""\S'),
    ".pyi": re.compile(r'r?"""\S'),
    ".rs": re.compile(r"//! \S"),
}

SUBJECT = re.compile(r"""(?<![\w`"'“])(?:Who|Whoever)\s[^?]*?([.!?](?=[\s*_)]|$)|\Z)""")
"""A sentence with this beginning; the group is what it ends with. Quoted, it is spoken of, not used."""

PATH = re.compile(r"(?<![\w./-])((?:bench|crates|docs|python|scripts|tests)/[\w./*-]+)([{<$]?)")
"""A path from the project's root, or a pattern of paths; the second group is not empty if it has a placeholder."""

STRONG_ORDERING = re.compile(r"(?:\bOrdering::|(?<![:\w]))(?:Acquire|Release|AcqRel|SeqCst)\b(?!\()")
ORDERING_NOTE = "ORDERING:"
NOTE_LINES = 6
"""So many lines above an ordering, its note may stand."""

Complaints = Iterator[str]
Paragraph = tuple[int, str]
"""The number of its first line, and its text without comment signs."""

Rule = Callable[[list[Path]], Complaints]


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


def subjects(files: list[Path]) -> Complaints:
    """Begin no sentence with "Who" or "Whoever" as its subject: name the thread, the waiter, the caller.

    Questions, headings and what is quoted are left alone.
    """
    for file in files:
        for first, text in prose(file):
            for match in SUBJECT.finditer(text):
                if match[1] != "?":
                    line = first + text.count("\n", 0, match.start())
                    yield f"{file}:{line}: a sentence begins with {match[0].split()[0]!r}: name the subject"


def prose(file: Path) -> Iterator[Paragraph]:
    """Return the paragraphs of a page, or of a source's comments and docstrings."""
    if file.suffix not in {*CODE_SUFFIXES, ".md", ".bash", ""} or RESULTS in file.parents:
        return iter(())
    text = (ROOT / file).read_text(encoding="utf-8", errors="replace")
    if file.suffix == ".md":
        return paragraphs(page_lines(text))
    if file.suffix == ".rs":
        return paragraphs(comment_lines(text, "//"))
    if file.suffix in CODE_SUFFIXES:
        return paragraphs(python_lines(text))
    return paragraphs(comment_lines(text, "#") if text.startswith("#") else [])


def paragraphs(lines: list[tuple[int, str]]) -> Iterator[Paragraph]:
    """Join lines that follow one another; an empty one, or a missing one, ends the paragraph."""
    first, block = 0, list[str]()
    for number, line in [*lines, (0, "")]:
        if block and (number != first + len(block) or not line.strip()):
            yield first, "\n".join(block)
            block = []
        if line.strip():
            first = first if block else number
            block.append(line)


def page_lines(text: str) -> list[tuple[int, str]]:
    """Return the lines of a Markdown page that are neither code nor headings, numbered."""
    lines, is_code = list[tuple[int, str]](), False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and not line.startswith(("#", "    ")):
            lines.append((number, line))
    return lines


def comment_lines(text: str, sign: str) -> list[tuple[int, str]]:
    """Return the comments that begin with ``sign``, numbered; one behind code is a paragraph of its own."""
    comment = re.compile(rf"(?P<code>.*?)(?:^|(?<=\s)){sign}[/!]*(?: |$)(?P<words>.*)")
    lines = list[tuple[int, str]]()
    for number, line in enumerate(text.splitlines(), start=1):
        if match := comment.match(line):
            if match["code"].strip():
                lines.append((number, ""))
            lines.append((number, match["words"]))
    return lines


def python_lines(text: str) -> list[tuple[int, str]]:
    """Return the comments and docstrings of Python code, numbered; a string by itself counts as a docstring."""
    lines = list[tuple[int, str]]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines.append((token.start[0], token.string.lstrip("#!: ")))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            source = ast.get_source_segment(text, node) or ""
            lines += enumerate(source.strip("\"'rR").splitlines(), start=node.lineno)
    return sorted(lines)


def orderings(files: list[Path]) -> Complaints:
    """Have a note at every atomic ordering but relaxed ones that names its partner; tests are exempt."""
    for file, text in code(files):
        if file.suffix != ".rs" or file.parts[::2][:2] != ("crates", "src") or file.stem == "tests":
            continue
        lines = without_tests(text).splitlines()
        for index, line in enumerate(without_imports(lines)):
            above = lines[max(0, index - NOTE_LINES) : index + 1]
            if STRONG_ORDERING.search(line) and not any(ORDERING_NOTE in note for note in above):
                yield f"{file}:{index + 1}: no {ORDERING_NOTE} note on this line or up to {NOTE_LINES} lines above"


def without_tests(text: str) -> str:
    """Return Rust code up to its module of tests."""
    return re.split(r"^#\[cfg\((?:all\()?test\b.*\]\nmod \w+ \{", text, maxsplit=1, flags=re.MULTILINE)[0]


def without_imports(lines: list[str]) -> Iterator[str]:
    """Return lines of Rust code without comments and texts, and blanks in the place of imports."""
    is_import = False
    for line in lines:
        bare = re.sub(r'"(?:\\.|[^"\\])*"', '""', line).partition("//")[0]
        is_import = is_import or re.match(r"\s*(?:pub(?:\(\w+\))? )?use ", bare) is not None
        yield "" if is_import else bare
        is_import = is_import and ";" not in bare


def paths(files: list[Path]) -> Complaints:
    """Name only files and folders that exist; a path may begin inside a crate, as ``tests/model.rs``."""
    targets = {path.as_posix() for file in files for path in (file, *file.parents)}
    for file in files:
        for first, text in prose(file):
            for match in PATH.finditer(text):
                path = match[1].rstrip("./-")
                if "/" in path and not match[2] and not is_target(path, targets):
                    line = first + text.count("\n", 0, match.start())
                    yield f"{file}:{line}: there is no {path}"


def is_target(path: str, targets: set[str]) -> bool:
    """Return whether a target equals the path or ends with it; ``*`` stands for any text."""
    if path in targets:
        return True
    if "*" in path:
        return bool(fnmatch.filter(targets, path) or fnmatch.filter(targets, f"*/{path}"))
    return any(target.endswith(f"/{path}") for target in targets)


def architecture(_files: list[Path]) -> Complaints:
    """Keep ARCHITECTURE.md a map."""
    lines = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").count("\n")
    if lines >= MAX_ARCHITECTURE_LINES:
        yield f"ARCHITECTURE.md: {lines} lines, not under {MAX_ARCHITECTURE_LINES}"


def walls(files: list[Path]) -> Complaints:
    """Let no import go through a wall between rooms, and no string name a module that is not there."""
    yield from rooms.complaints(files, ROOT)
    yield from rooms.misnamed(files, ROOT)


RULES: list[Rule] = [
    lengths,
    headers,
    names,
    finished,
    versions,
    architecture,
    subjects,
    paths,
    orderings,
    walls,
]


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
