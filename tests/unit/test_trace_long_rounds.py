"""Long rounds of a loop: from the moments at which they ended, through the file, to what may have been one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_trace_findings import MS, thread
from tests.unit.test_trace_views import process
from unsnarl.trace import loop_rounds
from unsnarl.trace.loop_rounds import LoopRounds, Part
from unsnarl.trace.traced.long_rounds import MOST, NEAR_NS, LongRounds
from unsnarl.trace.traced.tasks import FIELD

STARTED = 10**12
THREADS = process(threads=[thread(0, "MainThread"), thread(1, "loop")]).threads


def read(gathered: LongRounds, until_ns: int, *, going_ns: int | None = None) -> LoopRounds:
    """Return what the file tells that these rounds of the first thread make; one may go on since a moment."""
    going = None if going_ns is None else STARTED + going_ns
    text = "\n".join(map(FIELD.join, gathered.entries(STARTED + until_ns, [(THREADS[0].tid, STARTED, going)])))
    return loop_rounds.parse(text, THREADS, STARTED)


def whole(length_ns: int) -> list[Part]:
    """Return what is known of a stretch of which no round tells how long its thread had a processor."""
    return [Part(length_ns, length_ns)]


@given(st.lists(st.tuples(st.integers(0, 200 * MS), st.integers(50 * MS, 300 * MS)), max_size=30))
def test_each_long_round_is_found_again_and_no_time_between_them(rounds: list[tuple[int, int]]) -> None:
    gathered, at, placed, gaps = LongRounds(), 0, list[tuple[int, int]](), list[tuple[int, int]]()
    for pause_ns, length_ns in rounds:
        gaps.append((at, pause_ns))
        gathered.add(THREADS[0].tid, STARTED + at + pause_ns, STARTED + at + pause_ns + length_ns, length_ns // 3)
        placed.append((at + pause_ns, length_ns))
        at += pause_ns + length_ns
    found = read(gathered, at)
    assert [found.within(0, begin, length) for begin, length in placed] == [
        [Part(length, length // 3)] for _, length in placed
    ]
    assert [found.within(1, begin, length) for begin, length in placed] == [whole(length) for _, length in placed]
    assert not any(found.within(0, begin, pause) for begin, pause in gaps)
    assert found.within(0, 0, at) == [Part(length, length // 3) for _, length in placed]
    assert found.within(0, 0, at + 1) == whole(at + 1)


def many(pause_ns: int, count: int) -> tuple[LongRounds, LoopRounds]:
    """Return so many long rounds with pauses between them, as they were gathered and as they are read."""
    gathered, length_ns = LongRounds(), 60 * MS
    for number in range(count):
        begin = STARTED + number * (length_ns + pause_ns)
        gathered.add(THREADS[0].tid, begin, begin + length_ns, length_ns)
    return gathered, read(gathered, count * (length_ns + pause_ns))


def test_after_more_rounds_than_are_kept_they_count_as_not_watched() -> None:
    _, found = many(140 * MS, 2 * MOST)
    assert len(found.long) == MOST + 1
    assert found.within(0, 60 * MS, 140 * MS) == []
    assert found.within(0, (2 * MOST - 1) * 200 * MS, 60 * MS) == whole(60 * MS)
    assert found.within(0, (2 * MOST - 2) * 200 * MS + 60 * MS, 140 * MS) == whole(140 * MS)


def test_many_rounds_near_to_each_other_become_one_entry() -> None:
    _, found = many(NEAR_NS - 1, 100 * MOST)
    assert len(found.long) <= MOST
    assert found.within(0, 100 * MS, 60 * MS) == whole(60 * MS)


def test_a_round_that_goes_on_is_a_long_one() -> None:
    assert read(LongRounds(), 900 * MS, going_ns=100 * MS).within(0, 200 * MS, 600 * MS) == whole(600 * MS)
    assert read(LongRounds(), 900 * MS).within(0, 200 * MS, 600 * MS) == []


def test_a_thread_is_watched_from_its_first_round_unless_none_can_have_run_before() -> None:
    gathered = LongRounds()
    threads: list[tuple[int, int, int | None]] = [(THREADS[0].tid, STARTED + 300 * MS, None)]
    for since_ns, parts in ((None, whole(200 * MS)), (STARTED + 100 * MS, [])):
        gathered.since_ns = since_ns
        text = "\n".join(map(FIELD.join, gathered.entries(STARTED + 900 * MS, threads)))
        assert loop_rounds.parse(text, THREADS, STARTED).within(0, 200 * MS, 200 * MS) == parts


def test_nothing_is_known_of_rounds_that_nobody_watched_or_that_cannot_be_read() -> None:
    gathered = LongRounds()
    gathered.add(THREADS[0].tid, STARTED, STARTED + 60 * MS, 60 * MS)
    assert list(gathered.entries(STARTED, [])) == []
    assert (
        loop_rounds.parse("rounds\x1fx\nround\x1fx\x1f1\x1f2\x1f1\nthread\x1f1\n\x1f", THREADS, STARTED) == LoopRounds()
    )
