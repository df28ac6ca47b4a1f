"""What clients did to a lock and to a resource, and whether that may be.

A history is a list of operations with the times of their begin and end, by one clock for all processes. Checked is
what must hold whatever is lost, delayed, stopped or killed:

- the operations have an order that respects real time and in which the lock and the resource behave as one of each
  would: one holder at a time, fences that grow, no older fence accepted after a newer one. porcupine searches for it
  (``tests/cluster/linearizability``), where there is a Go to build it with;
- a fence is granted to one hold only, and fences follow real time: a hold that was asked for after another was granted
  has the higher fence;
- two holds are never both believed: the time from a grant to the hold's last successful check overlaps with no other's;
- every acquisition ends within its timeout and what a stopped process was stopped for.
"""

import json
import os
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

NS = 1_000_000_000
NEVER_NS = 1 << 62
"""The end of what a killed client had begun."""

CHECKER = Path(__file__).parent / "linearizability"


class Call(NamedTuple):
    """One acquisition, with what was done while it was held."""

    client: str
    begin_ns: int
    end_ns: int
    fence: int | None
    error: str
    checked_ns: int
    """The begin of the last check that succeeded; 0 if none did."""


def read(client: str, lines: list[dict[str, Any]]) -> list[Call]:
    """Return the acquisitions of one client's log."""
    calls: list[Call] = []
    for line in lines:
        if line["op"] == "acquire":
            calls.append(Call(client, line["begin"], line["end"], line["fence"], line["error"], 0))
        elif line["op"] == "check":
            calls[-1] = calls[-1]._replace(checked_ns=line["begin"])
        elif line["op"] == "end":
            calls[-1] = calls[-1]._replace(error=line["error"])
    return calls


def operations(client: int, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one client's operations; what a killed client had begun ends never, or at any time."""
    found: list[dict[str, Any]] = []
    believed: dict[str, Any] | None = None
    for line, after in pairwise([*lines, {"op": "killed"}]):
        if line["op"] == "try" and after["op"] != "write":
            found.append({**line, "op": "write", "end": NEVER_NS})
        elif line["op"] != "try" and line["fence"] is not None:
            found.append(line)
        if line["op"] in ("acquire", "check"):
            believed = line if line["fence"] is not None else None
        elif line["op"] == "end":
            believed = None
    if believed is not None:
        begin = believed["end" if believed["op"] == "acquire" else "begin"]
        found.append({"op": "end", "fence": believed["fence"], "begin": begin, "end": NEVER_NS})
    return [{**line, "client": client} for line in found]


def build_checker(directory: Path) -> Path | str:
    """Build the checker that others have written; return its path, or why it cannot be had."""
    go = shutil.which("go")
    if go is None:
        return "porcupine does not check: there is no Go"
    program = directory / "linearizability"
    built = subprocess.run(
        [go, "build", "-o", str(program), "."], cwd=CHECKER, check=False, capture_output=True, text=True,
        env={**os.environ, "GOFLAGS": "-buildvcs=false -mod=readonly"},
    )  # fmt: skip
    if built.returncode == 0:
        return program
    return f"porcupine does not check: {(built.stderr.strip().splitlines() or ['go build has failed'])[-1]}"


def linearizable(checker: Path, history: list[dict[str, Any]]) -> tuple[int, str]:
    """Have porcupine check a history; return 0 if it may be, and what the checker says."""
    text = "".join(json.dumps(line) + "\n" for line in history)
    done = subprocess.run([str(checker)], input=text, check=False, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def complaints(calls: list[Call]) -> list[str]:
    """Return a line for each thing that must not be."""
    granted = sorted((call for call in calls if call.fence is not None), key=lambda call: call.fence or 0)
    found = []
    for earlier, later in pairwise(granted):
        if earlier.fence == later.fence:
            found.append(f"fence {earlier.fence} was granted twice: {earlier} {later}")
    # In the order of fences no hold may have been granted before an earlier one was asked for.
    latest_begin = 0
    for call in granted:
        if call.end_ns < latest_begin:
            found.append(f"the fence does not follow real time: {call}")
        latest_begin = max(latest_begin, call.begin_ns)
    # Believed from the return of the call to the last check that succeeded.
    believed = sorted((call for call in granted if call.checked_ns), key=lambda call: call.end_ns)
    last: Call | None = None
    for call in believed:
        if last is not None and call.end_ns < last.checked_ns:
            found.append(f"two holders believed: {last} {call}")
        if last is None or call.checked_ns > last.checked_ns:
            last = call
    return found


def late(calls: list[Call], timeout_s: float, slack_s: float) -> list[str]:
    """Return a line for each acquisition that did not end within its timeout."""
    limit = int((timeout_s + slack_s) * NS)
    return [
        f"took {(call.end_ns - call.begin_ns) / NS:.1f} s: {call}"
        for call in calls
        if call.end_ns - call.begin_ns > limit
    ]
