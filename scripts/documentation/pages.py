"""What MkDocs cannot know of the pages in docs/: their order, where their links lead, and the pages that are made.

A hook of MkDocs, named in mkdocs.yml. It makes a page of the API reference for each public module, and the release
notes from CHANGELOG.md. A page of docs/ that `SECTIONS` does not name is added at the end of its folder's section.
Invariant: a link that leaves docs/ leads to the same file in the repository, and such a file must exist.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

PROJECT = Path(__file__).resolve().parent.parent.parent
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|<)([^)\s#]*)(#[^)\s]*)?(?=\))")

START = "index.md"
SECTIONS: dict[str, tuple[str, list[str]]] = {
    "Guide": (
        "guide",
        [
            "demo.md", "run.md", "enable.md", "recipes.md", "trace.md", "primitives/README.md", "migration.md",
            "processes.md", "cluster.md", "cluster-etcd.md", "cluster-postgresql.md", "cluster-redis.md",
            "warm.md", "pack.md", "green.md", "lab.md", "production.md", "troubleshooting.md", "faq.md",
            "caveats.md",
        ],
    ),
    "Concepts": ("concepts", ["gil.md", "warm.md", "glossary.md", "alternatives.md"]),
    "Reference": (
        "reference",
        ["cli.md", "api.md", "compatibility.md", "libraries.md", "platforms.md", "release-notes.md"],
    ),
    "Design": ("design", []),
    "Results": (
        "results",
        [
            "README.md",
            "worlds.md",
            "worlds-3.11.md",
            "worlds-3.15.md",
            "alternatives.md",
            "cases.md",
            "crater.md",
        ],
    ),
}  # fmt: skip
"""The sections of the site: the folder of each, and the pages that come first in it, those that exist."""

MODULES = {
    "unsnarl.gil": "The GIL scheduler",
    "unsnarl.sync": "Primitives for threads, tasks and greenlets",
    "unsnarl.ipc": "Primitives between processes",
    "unsnarl.metrics": "Metrics",
    "unsnarl.errors": "Exceptions",
}
"""The public modules, each with the heading of its page."""


RELEASE_NOTES = "reference/release-notes.md"

MADE_FROM = {
    PROJECT / "CHANGELOG.md": PROJECT / "docs" / RELEASE_NOTES,
    PROJECT / "docs" / "README.md": PROJECT / "docs" / START,
}
"""The pages of the site that stand for a file of the repository."""


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages that are made, and put all pages in order."""
    for name, text in made_pages():
        files.append(File.generated(config, name, content=text))
    config.nav = list(navigation([file.src_uri for file in files.documentation_pages()]))
    return files


def made_pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page that docs/ does not have."""
    for module, heading in MODULES.items():
        yield api_page(module), f"# {heading}\n\n`{module}`\n\n::: {module}\n"
    changes = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
    yield RELEASE_NOTES, changes.replace("# Changelog", "# Release notes", 1)


def api_page(module: str) -> str:
    """Return the name of a module's page."""
    return f"reference/modules/{module.rpartition('.')[2]}.md"


def navigation(pages: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the start page, then each section with its pages; the folders in a section's folder are sections in it."""
    yield {"Start": START}
    for title, (folder, first) in SECTIONS.items():
        within = [page for page in pages if page.startswith(f"{folder}/")]
        yield {title: ordered(folder, within, [f"{folder}/{name}" for name in first])}


def ordered(folder: str, pages: list[str], first: list[str]) -> list[Any]:
    """Return a folder's pages, those of `first` before the others, and each folder in it where its first page is."""
    ranks = {page: rank for rank, page in enumerate(first)}
    entries: list[Any] = []
    below: dict[str, list[str]] = {}
    for page in sorted(pages, key=lambda page: (ranks.get(page, len(ranks)), "README" not in page, page)):
        inner = page.removeprefix(f"{folder}/").rpartition("/")[0]
        if not inner:
            entries.append(page)
        elif inner in below:
            below[inner].append(page)
        else:
            below[inner] = [page]
            entries.append({inner.rpartition("/")[2].capitalize(): below[inner]})
    return entries


def on_page_markdown(markdown: str, *, page: Page, **_kwargs: Any) -> str:
    """Lead each link that leaves docs/ to the repository."""
    here = PROJECT if page.file.src_uri == RELEASE_NOTES else PROJECT / "docs" / Path(page.file.src_uri).parent
    return LINK.sub(lambda match: target_of(match[1], match[2] or "", here, page.file.src_uri), markdown)


def target_of(target: str, anchor: str, here: Path, page: str) -> str:
    """Return where a link of a page leads on the site."""
    if not target:
        return anchor
    path = (here / target).resolve()
    path = MADE_FROM.get(path, path)
    if (PROJECT / "docs") in path.parents and (path.is_file() or path in MADE_FROM.values()):
        return relative(path.relative_to(PROJECT / "docs"), Path(page)) + anchor
    if not path.exists():
        raise PluginError(f"{page}: dead link: {target}")
    kind = "tree" if path.is_dir() else "blob"
    return f"{repository()}/{kind}/main/{path.relative_to(PROJECT)}{anchor}"


def relative(target: Path, page: Path) -> str:
    """Return the way from a page to a target, both relative to docs/."""
    return "/".join([*[".."] * len(page.parent.parts), *target.parts])


def repository() -> str:
    """Return the address of the repository, as the package's metadata has it."""
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    return str(settings["project"]["urls"]["Homepage"])
