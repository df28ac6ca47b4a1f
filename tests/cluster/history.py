"""What clients did to a lock and to a resource, and whether that may be.

A history is a list of calls with the times of their begin and end, by one clock for all processes. Checked is what
must hold whatever is lost, delayed, stopped or killed:

- a fence is granted to one hold only, and fences follow real time: a hold that was asked for after another was granted
  has the higher fence;
- two holds are never both believed: the time from a grant to the hold's last successful check overlaps with no other's;
- every acquisition ends within its timeout and what a stopped process was stopped for.
"""

from itertools import pairwise
from typing import Any, NamedTuple

NS = 1_000_000_000


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
    """Return the calls of one client's log; a killed client's last one may be cut."""
    return [
        Call(client, line["begin"], line["end"], line["fence"], line["error"], line["checked"])
        for line in lines
        if "end" in line
    ]


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
