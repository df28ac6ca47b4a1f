"""Formats a diagnosis as text and as JSON (``docs/reference/trace-formats.md``). Pure."""

from __future__ import annotations

import json
from dataclasses import asdict

from unsnarl.doctor import importtime
from unsnarl.doctor.comparison import Outcome
from unsnarl.doctor.diagnosis import Diagnosis
from unsnarl.doctor.forecast import Forecast
from unsnarl.doctor.packing import Packed
from unsnarl.report.columns import COLUMNS, aligned, table, wrapped
from unsnarl.trace.findings.finding import BY_DOCTOR, PACK, Remedy, duration
from unsnarl.trace.views.terminal import MARKS

SCHEMA = 1
MAX_CALLS = 8
SPARED = (5, 3)
"""Columns of the table of ways that a narrow terminal is spared, first to last: switches, and the middle half."""
ENABLED = "this environment is enabled for {} (`unsnarl status`); only the ways with unsnarl were run with it"
"""Without this line, the row of stock would look like what the user has now."""
LEFT_OUT = "the scheduler was not tried and nothing was traced: {}"
WAYS = {"unsnarl run": "scheduler", "unsnarl run --patch": "native primitives", "unsnarl warm": "warm", PACK: "pack"}
"""The way that tries the command of a remedy."""


def text(diagnosis: Diagnosis, columns: int = COLUMNS) -> str:
    """Return the diagnosis as text with the verdict at the end; sentences are wrapped at ``columns``."""
    findings = [line for finding in _findings(diagnosis) for line in wrapped(finding, columns)]
    verdict = [line for sentence in diagnosis.verdict for line in wrapped(sentence, columns)]
    enabled = wrapped(ENABLED.format(diagnosis.enabled), columns) if diagnosis.enabled else []
    left_out = wrapped(LEFT_OUT.format(diagnosis.left_out), columns) if diagnosis.left_out else []
    parts = [
        _outcomes(diagnosis, columns),
        left_out,
        enabled,
        findings,
        _imports(diagnosis, columns),
        _calls(diagnosis, columns),
        verdict,
    ]
    return "\n".join("".join(f"{line}\n" for line in part) for part in parts if part)


def _outcomes(diagnosis: Diagnosis, columns: int) -> list[str]:
    rows = [["", "runs", "median", "middle half", "CPU", "switches", "against stock"]]
    rows += [
        [
            outcome.name,
            str(outcome.runs),
            duration(outcome.wall_s * 1e9),
            f"{duration(outcome.low_s * 1e9)} – {duration(outcome.high_s * 1e9)}",
            duration(outcome.cpu_s * 1e9),
            f"{outcome.switches:,.0f}",
            _against_stock(outcome),
        ]
        for outcome in diagnosis.outcomes
    ]
    ending = f"(status {diagnosis.status})" if diagnosis.status else ""
    command = f"python {' '.join(diagnosis.words)} {ending}".rstrip()
    return [*wrapped(command, columns), *_fitting(rows, columns)]


def _fitting(rows: list[list[str]], columns: int) -> list[str]:
    """Return the table of ways in the columns that fit; the document of ``--json`` has all."""
    lines = aligned(rows)
    for spared in SPARED:
        if max(map(len, lines)) > columns:
            rows = [row[:spared] + row[spared + 1 :] for row in rows]
            lines = aligned(rows)
    return table(rows, columns)


def _against_stock(outcome: Outcome) -> str:
    if outcome.name == "stock":
        return ""
    return f"ended {outcome.failure}" if outcome.failure else f"{outcome.ratio:.2f} × ({outcome.verdict})"


def _findings(diagnosis: Diagnosis) -> list[str]:
    lines: list[str] = []
    for finding in diagnosis.findings:
        lines.append(f"{MARKS[finding.severity]} {finding.title}")
        lines += [f"     {detail}" for detail in finding.details]
        lines += [f"     → {_what(remedy)}{_gain(diagnosis, remedy)}" for remedy in finding.remedies]
    return lines


def _what(remedy: Remedy) -> str:
    """Return the words of a remedy: what the doctor would measure is in its table."""
    return remedy.what.removesuffix(f": {BY_DOCTOR}")


def _gain(diagnosis: Diagnosis, remedy: Remedy) -> str:
    """Return the predicted and the measured saving of a remedy."""
    if remedy.command is None:
        return ""
    is_pack = remedy.command == PACK
    expected = diagnosis.pack.forecast if is_pack else None
    saves_ns = expected.saves_ns if expected else remedy.saves_ns
    predicted = f"predicted to save {duration(saves_ns)}{_parts(expected)}; " if saves_ns else ""
    tried = [outcome for outcome in diagnosis.outcomes if WAYS.get(remedy.command) == outcome.name]
    why = diagnosis.pack.reason if is_pack and diagnosis.pack.reason else "it cannot be tried here"
    measured = f"measured: {_against_stock(tried[0])}" if tried else f"not measured: {why}"
    return f" ({remedy.command}: {predicted}{measured})"


def _parts(forecast: Forecast | None) -> str:
    """Return the parts of a forecast in words."""
    if forecast is None:
        return ""
    parts = [
        (forecast.finding_ns, "finding and reading modules"),
        (forecast.collecting_ns, "garbage collection during imports"),
        (forecast.ending_ns, "destroying them at the end"),
    ]
    return f" ({', '.join(f'{duration(saved_ns)} {of}' for saved_ns, of in parts if saved_ns > 0)})"


def _imports(diagnosis: Diagnosis, columns: int) -> list[str]:
    modules = diagnosis.imports
    if not modules:
        return []
    rows = [["slowest imports", "itself", "with all it imports"]]
    rows += [
        [module.name, duration(module.self_us * 1e3), duration(module.total_us * 1e3)]
        for module in importtime.slowest(modules)
    ]
    return [f"{len(modules):,} imports took {duration(importtime.total_us(modules) * 1e3)}", *table(rows, columns)]


def _calls(diagnosis: Diagnosis, columns: int) -> list[str]:
    calls = diagnosis.calls
    if not calls.rows:
        return wrapped(calls.reason, columns) if calls.reason else []
    total = sum(row.calls for row in calls.rows)
    rows = [["system call", "calls", "errors", "time under strace"]]
    rows += [[row.name, f"{row.calls:,}", f"{row.errors:,}", duration(row.time_ns)] for row in calls.rows[:MAX_CALLS]]
    return [f"{total:,} system calls", *table(rows, columns)]


def _pack(pack: Packed) -> dict[str, object]:
    if pack.forecast is None:
        return {"saves_ns": None, "reason": pack.reason}
    return {"saves_ns": pack.forecast.saves_ns, **asdict(pack.forecast), "reason": pack.reason}


def data(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as JSON."""
    document = {
        "schema": SCHEMA,
        "words": diagnosis.words,
        "status": diagnosis.status,
        "outcomes": [asdict(outcome) for outcome in diagnosis.outcomes],
        "findings": [asdict(finding) for finding in diagnosis.findings],
        "effects": [asdict(effect) for effect in diagnosis.effects],
        "imports": [asdict(module) for module in diagnosis.imports],
        "syscalls": {"reason": diagnosis.calls.reason, "rows": [asdict(row) for row in diagnosis.calls.rows]},
        "pack": _pack(diagnosis.pack),
        "helps": diagnosis.helps,
        "verdict": diagnosis.verdict,
        "enabled": diagnosis.enabled,
        "left_out": diagnosis.left_out,
    }
    return json.dumps(document, indent=1) + "\n"
