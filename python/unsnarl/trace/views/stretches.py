"""Encodes the stretches of threads for the page, in some four bytes each; ``timeline.js`` decodes them.

Pure. A thread's stretches follow each other without a gap. So each one is two numbers: the distance of its end from
the end before it, in units of ``UNIT_NS``, and the index of its kind, which is its state and its node. Numbers are
written in groups of seven bits, the lowest first, with the highest bit set in all bytes but the last; the most frequent
kinds have the smallest indices. A thread begins with the begin of its first stretch. Invariant: ends are rounded, not
lengths, so no error adds up; a stretch that is shorter than the unit may have no length, and none is left out.
"""

from __future__ import annotations

import base64
from collections import Counter

from unsnarl.trace.model import Process

UNIT_NS = 100


def kinds_of(process: Process) -> list[tuple[int, int]]:
    """Return state and node of the stretches of a process, the most frequent first."""
    counts = Counter((state, node) for thread in process.threads for _, _, state, node in thread.stretches)
    return [kind for kind, _ in counts.most_common()]


def encoded(stretches: list[tuple[int, int, int, int]], kinds: dict[tuple[int, int], int]) -> str:
    """Return the stretches of one thread as base64, with the indices of their kinds."""
    if not stretches:
        return ""
    data = bytearray()
    at = round(stretches[0][0] / UNIT_NS)
    _append(data, at)
    for begin_ns, length_ns, state, node in stretches:
        end = (begin_ns + length_ns + UNIT_NS // 2) // UNIT_NS
        _append(data, max(end - at, 0))
        _append(data, kinds[state, node])
        at = max(end, at)
    return base64.b64encode(data).decode()


def _append(data: bytearray, number: int) -> None:
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    data.append(number)
