"""A page's stretches keep their moments to a tenth of a microsecond, and take some four bytes each."""

import base64
import random

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.test_trace_findings import thread
from tests.unit.test_trace_views import process
from unsnarl.trace.syscalls import Syscalls
from unsnarl.trace.views import html
from unsnarl.trace.views.stretches import UNIT_NS, encoded

Stretches = list[tuple[int, int, int, int]]
MS = 1_000_000


def decoded(text: str, kinds: list[tuple[int, int]]) -> Stretches:
    """Return what the page's script reads."""
    numbers: list[int] = []
    value = shift = 0
    for byte in base64.b64decode(text):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(value)
            value = shift = 0
    result: Stretches = []
    end = numbers[0] if numbers else 0
    for length, kind in zip(numbers[1::2], numbers[2::2], strict=True):
        result.append((end * UNIT_NS, length * UNIT_NS, *kinds[kind]))
        end += length
    return result


def consecutive(begin_ns: int, lengths: list[int], kinds: list[tuple[int, int]]) -> Stretches:
    result: Stretches = []
    for at, length in enumerate(lengths):
        result.append((begin_ns, length, *kinds[at % len(kinds)]))
        begin_ns += length
    return result


@given(st.integers(0, 10**12), st.lists(st.integers(1, 10**10), max_size=30), st.integers(1, 200))
def test_no_moment_moves_by_more_than_half_a_unit(begin_ns: int, lengths: list[int], count: int) -> None:
    kinds = [(number % 6, number) for number in range(count)]
    made = consecutive(begin_ns, lengths, kinds)
    shown = decoded(encoded(made, {kind: at for at, kind in enumerate(kinds)}), kinds)
    assert [entry[2:] for entry in shown] == [entry[2:] for entry in made]
    for seen, meant in zip(shown, made, strict=True):
        assert abs(seen[0] - meant[0]) <= UNIT_NS / 2
        assert abs(seen[0] + seen[1] - meant[0] - meant[1]) <= UNIT_NS / 2


def test_three_milliseconds_are_three_milliseconds_in_a_minute_of_many_threads() -> None:
    """A thousand threads with as many stretches each would take ten times as much as these hundred."""
    source = random.Random(4)
    entries = [thread(number, f"worker-{number}") for number in range(100)]
    for entry in entries:
        lengths = [source.randrange(1000, 200 * MS) for _ in range(600)]
        lengths[300] = 2_810_000
        entry["stretches"] = consecutive(source.randrange(MS), lengths, [(0, 1), (3, 0), (1, 1)])
    made = process(threads=entries, length_ns=60_000 * MS)
    text = html.page([made], [], Syscalls())
    assert len(text) < 500_000 + 50_000
    kinds = {(0, 1): 0, (3, 0): 1, (1, 1): 2}
    shown = decoded(encoded(made.threads[7].stretches, kinds), list(kinds))
    assert abs(shown[300][1] - 2_810_000) <= UNIT_NS
