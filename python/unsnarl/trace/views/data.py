"""A trace as JSON with a documented schema: ``docs/reference/trace-formats.md``."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

from unsnarl.trace.findings.finding import Finding
from unsnarl.trace.model import STATES, Process
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


def summary_of(process: Process) -> dict[str, Any]:
    """Return a process as plain data for JSON, without the stretches."""
    names = [field.name for field in fields(process)]
    return {name: _plain(getattr(process, name)) for name in names}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(entry) for entry in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if hasattr(value, "__dataclass_fields__"):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value) if field.name != "stretches"}
    return value
