"""The suites to run, read from ``manifest.toml``: which version, where its tests are, how they are run, what is known.

Pure but for reading that one file. An unknown key, a missing one or two suites of one name is an error, which names the
entry.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

PATH = Path(__file__).with_name("manifest.toml")
SOURCES = ("sdist", "wheel", "cpython", "git")
"""Where the tests come from: the source distribution, the installed package, the interpreter, or a repository."""

CHOOSING = ("-k", "-m")
"""The options by which pytest runs some tests of those that it finds; their expression is the next word."""
LEAVING_OUT = ("--ignore", "--ignore-glob", "--deselect", "--benchmark-skip")
"""The options by which it leaves tests out."""


class ManifestError(ValueError):
    """The manifest is invalid; the message names the entry."""


@dataclass(frozen=True, slots=True)
class Suite:
    """One entry of the manifest.

    Attributes:
        name: the distribution, as in the package registry.
        version: the version that is tested; empty for the interpreter's own tests.
        tests: what pytest selects the tests with, or the modules of ``python -m test``, of any interpreter's version.
        options: words for pytest in every run, also where it runs one test alone.
        source: one of SOURCES.
        repository: the address of the repository with the tests, where no distribution has them.
        tag: its tag of this version.
        extra: the extra of the distribution to install.
        requires: what the tests need besides, as requirements.
        remove: paths of the source to remove, so that the installed package is tested.
        folders: empty folders to make beside the installed packages, which the wheel lacks and the tests look for.
        without: tests that are left out, each with the reason.
        known: tests that have to differ, each with the reason.
        service: a server that the tests need: ``redis`` or ``postgres``.
        variables: of the environment, in every run.
        command: a command whose output has to be the same when it is warm.
        limit_s: how long one way may take.
        chosen: whether the suite belongs to the tenth that each CI run can afford.
    """

    name: str
    version: str = ""
    tests: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    source: str = "sdist"
    repository: str = ""
    tag: str = ""
    extra: str = ""
    requires: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    without: dict[str, str] = field(default_factory=dict[str, str])
    known: dict[str, str] = field(default_factory=dict[str, str])
    service: str = ""
    variables: dict[str, str] = field(default_factory=dict[str, str])
    command: tuple[str, ...] = ()
    limit_s: float = 120.0
    chosen: bool = False

    @property
    def distribution(self) -> str:
        """Return the requirement to install, without its extra's brackets if it has none."""
        extra = f"[{self.extra}]" if self.extra else ""
        return f"{self.name}{extra}=={self.version}"

    @property
    def origin(self) -> str:
        """Return the repository and the tag of the tests; empty if a distribution has them."""
        return f"{self.repository} at {self.tag}" if self.source == "git" else ""

    @property
    def is_partial(self) -> bool:
        """Whether some tests of the distribution are not run.

        So it is if several places are named instead of the one where all tests are, or if an option leaves tests out.
        """
        words = (*self.tests, *self.options)
        chosen = any(word in CHOOSING or word.split("=")[0] in LEAVING_OUT for word in words)
        places = [
            word
            for before, word in zip(("", *self.tests), self.tests, strict=False)
            if not word.startswith("-") and before not in CHOOSING
        ]
        return chosen or len(places) > 1 or bool(self.without)


def read(path: Path = PATH) -> list[Suite]:
    """Return all suites, in the order of the file.

    Raises:
        ManifestError: an entry is invalid.
        OSError: the file cannot be read.
    """
    document = _document(path)
    suites = [_suite(entry) for entry in document.get("suite", [])]
    names = [suite.name for suite in suites]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ManifestError(f"the manifest has {twice[0]!r} twice")
    return suites


def left_out(path: Path = PATH) -> dict[str, str]:
    """Return the modules of CPython's tests that no suite has, each with the reason."""
    return dict(_document(path).get("left_out", {}))


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ManifestError(f"{path}: {error}") from None


def _suite(entry: dict[str, Any]) -> Suite:
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise ManifestError(f"an entry of the manifest has no name: {entry}")
    known = {one.name for one in fields(Suite)}
    for key in entry:
        if key not in known:
            raise ManifestError(f"{name}: unknown key {key!r}")
    values: dict[str, Any] = {}
    for key, value in entry.items():
        values[key] = tuple(map(str, cast("list[object]", value))) if isinstance(value, list) else value
    suite = Suite(**values)
    _check(suite)
    return suite


def _check(suite: Suite) -> None:
    name = suite.name
    if suite.source not in SOURCES:
        raise ManifestError(f"{name}: the source is one of {', '.join(SOURCES)}, not {suite.source!r}")
    if suite.source != "cpython" and not suite.version:
        raise ManifestError(f"{name}: no version")
    if {bool(suite.repository), bool(suite.tag)} != {suite.source == "git"}:
        raise ManifestError(f"{name}: a suite has a repository and a tag if its source is git, and only then")
    if not suite.tests:
        raise ManifestError(f"{name}: no tests")
