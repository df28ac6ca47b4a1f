"""Gathers when the loops of asyncio made long rounds: between these, no callback kept the others waiting for long.

A thread that computes in a loop without a pause drops the GIL so shortly between two rounds that the recording shows
one long stretch. Pure: moments in, lines out. Must never: grow without a bound. Moments are nanoseconds of the
monotonic clock.
"""

ROUND = "round"
"""The first field of a long round: its thread, begin, end, and for how long its thread lacked no processor."""

THREAD = "thread"
"""The first field of a thread whose rounds are watched: its number, and from when on."""

UNTIL = "rounds"
"""The first field of the entry that says until when rounds were watched."""

NEAR_NS = 25_000_000
"""Where there are many long rounds, those that lie so near to each other become one entry: no stall fits in between."""

MOST = 2048
"""Entries that are kept. Where there are more that are not near to each other, rounds count as watched until then."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class LongRounds:
    """The long rounds of the loops of a process.

    Attributes:
        since_ns: from when on every round is watched; None if loops may have run before, each in a round that is not.
    """

    __slots__ = ("_entries", "_full_ns", "since_ns")

    def __init__(self) -> None:
        """Start without a round."""
        self.since_ns: int | None = None
        self._full_ns: int | None = None
        self._entries: list[tuple[int, int, int, int]] = []

    def add(self, tid: int, begin_ns: int, end_ns: int, ran_ns: int) -> None:
        """Keep a long round of a thread, which lacked no processor for ``ran_ns``: it ran, or blocked.

        The rounds of one thread come in their order.
        """
        if self._full_ns is not None:
            return
        self._entries.append((tid, begin_ns, end_ns, ran_ns))
        if len(self._entries) > MOST:
            merged = _near_merged(self._entries)
            if len(merged) > MOST // 2:
                self._full_ns = begin_ns
            self._entries = merged

    def entries(self, now_ns: int, threads: "list[tuple[int, int, int | None]]") -> "Iterable[tuple[str, ...]]":
        """Return the fields of the entries.

        ``threads`` are those whose rounds are watched: their numbers, when the first began, and when the one began that
        goes on, or None.
        """
        if not threads:
            return
        yield UNTIL, str(now_ns if self._full_ns is None else self._full_ns)
        for tid, first_ns, _ in threads:
            yield THREAD, str(tid), str(first_ns if self.since_ns is None else self.since_ns)
        going = [(tid, begin_ns, now_ns, now_ns - begin_ns) for tid, _, begin_ns in threads if begin_ns is not None]
        for entry in (*list(self._entries), *going):
            yield ROUND, *map(str, entry)


def _near_merged(entries: list[tuple[int, int, int, int]]) -> list[tuple[int, int, int, int]]:
    last: dict[int, int] = {}
    merged: list[tuple[int, int, int, int]] = []
    for tid, begin_ns, end_ns, ran_ns in entries:
        index = last.get(tid)
        if index is not None and begin_ns - merged[index][2] < NEAR_NS:
            merged[index] = (tid, merged[index][1], end_ns, merged[index][3] + ran_ns)
        else:
            last[tid] = len(merged)
            merged.append((tid, begin_ns, end_ns, ran_ns))
    return merged
