"""The frame of every page of a trace: one file of HTML with the palette and the shared rules, and what is put into it.

The frame is ``document.html`` and ``document.css``, next to this module. Must never: know what a page shows.
"""

from __future__ import annotations

import html
import json
from pathlib import Path

HERE = Path(__file__).parent


def document(title: str, folder: Path, name: str, parts: dict[str, str]) -> str:
    """Return a page with the template ``NAME.html`` and the rules ``NAME.css`` of a folder, its marks replaced."""
    style = (HERE / "document.css", folder / f"{name}.css")
    body = put_in((folder / f"{name}.html").read_text(encoding="utf-8"), parts)
    frame = {
        "@TITLE@": html.escape(title),
        "@STYLE@": "".join(path.read_text(encoding="utf-8") for path in style),
        "@BODY@": body.rstrip("\n"),
    }
    return put_in((HERE / "document.html").read_text(encoding="utf-8"), frame)


def embedded(data: object) -> str:
    """Return data as JSON for a script element, which ends at the first "</", even within a string."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    text = text.replace("</", "<\\/").replace("<!--", "\\u003c!--").replace("<script", "\\u003cscript")
    return text.encode("utf-8", "replace").decode("utf-8")


def put_in(template: str, parts: dict[str, str]) -> str:
    """Replace each mark by its part; inserted text is not searched for further marks."""
    pieces: list[str] = []
    for mark in sorted(parts, key=template.index):
        before, _, template = template.partition(mark)
        pieces += [before, parts[mark]]
    return "".join([*pieces, template])
