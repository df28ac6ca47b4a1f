"""A comparison as JSON with a documented schema: ``docs/reference/trace-formats.md``."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from unsnarl.trace.comparing.comparison import Comparison
from unsnarl.trace.model import STATES, Process

SCHEMA = 1
"""Increased when a name changes its meaning or is removed; names may be added at any time."""


def text(comparison: Comparison) -> str:
    """Return the document."""
    document = {
        "schema": SCHEMA,
        "states": list(STATES),
        "is_per_second": comparison.is_per_second,
        "before": [_process(process) for process in comparison.before],
        "after": [_process(process) for process in comparison.after],
        "shared": [
            {
                "before": entry.before.pid,
                "after": entry.after.pid,
                "rows": [asdict(row) for row in entry.rows],
                "kinds": [asdict(kind) for kind in entry.kinds],
            }
            for entry in comparison.shared
        ],
        "worse": [asdict(row) for row in comparison.worse],
        "better": [asdict(row) for row in comparison.better],
        "gone": [asdict(finding) for finding in comparison.gone],
        "new": [asdict(finding) for finding in comparison.new],
        "lasting": [asdict(finding) for finding in comparison.lasting],
    }
    return json.dumps(document, indent=1) + "\n"


def _process(process: Process) -> dict[str, Any]:
    return {"pid": process.pid, "command": process.command, "length_ns": process.length_ns}
