"""A trace as JSON with a documented schema: ``docs/reference/trace-formats.md``."""

from __future__ import annotations

import json
from dataclasses import asdict

from unsnarl.trace.findings.finding import Finding
from unsnarl.trace.model import STATES, Process, summary_of
from unsnarl.trace.syscalls import Syscalls

SCHEMA = 1
"""Increased when a name changes its meaning or is removed; names may be added at any time."""


def text(processes: list[Process], findings: list[Finding], syscalls: Syscalls) -> str:
    """Return the document."""
    document = {
        "schema": SCHEMA,
        "states": list(STATES),
        "findings": [asdict(finding) for finding in findings],
        "processes": [summary_of(process) for process in processes],
        "syscalls": syscalls.summary(),
    }
    return json.dumps(document, indent=1) + "\n"
