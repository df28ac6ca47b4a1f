"""Gathers when the loops of asyncio made long rounds: between these, no callback kept the others waiting for long.

A thread that computes in a loop without a pause drops the GIL so shortly between two rounds that the recording shows
one long stretch. Pure: moments in, lines out. Must never: grow without a bound.
"""

ENTRY = "round"
"""The first field of a long round; a file without any has no such entry."""

WATCHED = "rounds"
"""The first field of the entry that says from when until when rounds were watched."""

NEAR_NS = 25_000_000
"""Where there are many long rounds, those that lie so near to each other become one entry: no stall fits in between."""

MOST = 2048
"""Entries that are kept; of more that are not near to each other, the last grows, so that none is called short."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class LongRounds:
    """The long rounds of the loops of a process.

    Attributes:
        since_ns: from when on rounds are watched, on the monotonic clock; 0 while they are not.
    """

    __slots__ = ("_entries", "_is_full", "_last", "since_ns")

    def __init__(self) -> None:
        """Start without a round."""
        self.since_ns = 0
        self._is_full = False
        self._entries: list[list[int]] = []
        self._last: dict[int, list[int]] = {}

    def add(self, tid: int, begin_ns: int, end_ns: int) -> None:
        """Keep a long round of a thread; those of one thread come in their order."""
        if len(self._entries) >= MOST and not self._is_full:
            self._merge_near()
        last = self._last.get(tid)
        if self._is_full and last is not None:
            last[2] = end_ns
            return
        self._last[tid] = entry = [tid, begin_ns, end_ns]
        self._entries.append(entry)

    def _merge_near(self) -> None:
        """Make one entry of those that are near to each other; where that makes no room for many, no more are kept."""
        merged: list[list[int]] = []
        self._last = {}
        for tid, begin_ns, end_ns in self._entries:
            last = self._last.get(tid)
            if last is not None and begin_ns - last[2] < NEAR_NS:
                last[2] = end_ns
            else:
                self._last[tid] = entry = [tid, begin_ns, end_ns]
                merged.append(entry)
        self._entries = merged
        self._is_full = len(merged) > MOST // 2

    def entries(self, until_ns: int) -> "Iterable[tuple[str, ...]]":
        """Return the fields of the entries; none while rounds are not watched."""
        if not self.since_ns:
            return
        yield WATCHED, str(self.since_ns), str(until_ns)
        for entry in list(self._entries):
            yield ENTRY, *map(str, entry)
