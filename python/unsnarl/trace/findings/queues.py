"""Findings about bounded queues, of threads and between processes: producers wait for room.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import defaultdict

from unsnarl.trace.findings.account import PUTS, PUTS_IN, parts_of
from unsnarl.trace.findings.finding import NOTABLE, Finding, Remedy, duration, of_life
from unsnarl.trace.model import IN_IO, LOCK, Process, Thread

LEAST_NS = 100_000_000
LEAST_SHARE = 0.3
"""The shortest wait for room of one thread, in all and as a share of its life."""

_PUT, _QUEUES = "Queue.put", "/queue.py"
_WAIT, _THREADING = "Condition.wait", "/threading.py"


def findings(process: Process) -> list[Finding]:
    """Return the lines at which threads wait long for room in a queue, the longest wait first.

    The queues are those of the modules `queue` and `multiprocessing`.
    """
    times: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for number, state, node, time_ns in process.stacks:
        if state == LOCK and _is_in_put(process, node):
            times["a queue", str(process.line_of(node))][number] += time_ns
        elif state == IN_IO and _is_in_put_between_processes(process, node):
            times["a queue between processes", str(process.program_line_of(node))][number] += time_ns
    found = [_full(process, what, place, by_thread) for (what, place), by_thread in times.items()]
    return sorted((one for one in found if one is not None), key=lambda one: -int(one.figures["longest_ns"]))


def _is_in_put_between_processes(process: Process, node: int) -> bool:
    innermost = next(iter(process.stack(node)), None)
    return innermost is not None and innermost.function in PUTS and innermost.file.endswith(PUTS_IN)


def _is_in_put(process: Process, node: int) -> bool:
    """Tell whether a thread waits for room in `put`, and not for the queue's mutex, which another thread may hold."""
    stack = process.stack(node)[:2]
    if len(stack) < 2 or not all(process.is_library(line) for line in stack):
        return False
    wait, put = stack
    is_in_wait = wait.function == _WAIT and wait.file.endswith(_THREADING)
    return is_in_wait and put.function == _PUT and put.file.endswith(_QUEUES)


def _full(process: Process, what: str, place: str, by_thread: dict[int, int]) -> Finding | None:
    number = max(by_thread, key=lambda number: by_thread[number])
    thread, longest_ns = process.threads[number], by_thread[number]
    if longest_ns < max(LEAST_NS, LEAST_SHARE * sum(thread.totals_ns)):
        return None
    others = len(by_thread) - 1
    who = f"thread `{thread.label}`" + (f" and {others} {'other' if others == 1 else 'others'}" if others else "")
    consumers = _consumers(process, place)
    gone_ns = _gone_ns(process, thread, consumers)
    is_gone = 2 * gone_ns > longest_ns
    return Finding(
        "full-queue",
        NOTABLE,
        f"{what} is full: {who} {'wait' if others else 'waits'} for room at {place}, for up to "
        f"{duration(longest_ns)}: {of_life(process, longest_ns, sum(thread.totals_ns))}",
        [_about_gone(process, consumers[0], gone_ns)] if is_gone else _about(process, consumers),
        thread.label,
        place,
        {
            "threads": len(by_thread),
            "longest_ns": longest_ns,
            "total_ns": sum(by_thread.values()),
            "ended": int(is_gone),
        },
        _GONE if is_gone else _SLOWER,
    )


_SLOWER = Remedy(
    "unsnarl will not help here: the consumers are slower. Make their work shorter, or have more of them where they "
    "wait for something; a larger queue only helps against bursts"
)
_GONE = Remedy(
    "unsnarl will not help here: nobody takes items any more. Find out why the consumer ended (an exception in its "
    "thread?), and let producers notice that"
)


def _consumers(process: Process, place: str) -> list[int]:
    """Return the threads that made room for those that waited at a line, the most frequent first."""
    counts: dict[int, int] = defaultdict(int)
    for waits in process.locks:
        if waits.releaser is not None and str(process.line_of(waits.wait_node)) == place:
            counts[waits.releaser] += waits.count
    return sorted(counts, key=lambda number: -counts[number])


def _gone_ns(process: Process, producer: Thread, consumers: list[int]) -> int:
    """Return for how long a producer lived on when all consumers had ended; 0 if one lives, or none is known."""
    threads = [process.threads[number] for number in consumers]
    if not threads or not all(thread.has_ended for thread in threads):
        return 0
    end_ns = producer.end_ns if producer.has_ended else process.length_ns
    return max(end_ns - max(thread.end_ns for thread in threads), 0)


def _about_gone(process: Process, consumer: int, gone_ns: int) -> str:
    return f"room was made by `{process.label(consumer)}`, which had ended {duration(gone_ns)} before the wait was over"


def _about(process: Process, consumers: list[int]) -> list[str]:
    """Return in words what the thread does most that made room most often."""
    if not consumers:
        return []
    most = next(iter(parts_of(process, consumers[:1])), None)
    does = f", which spends most of its time {most.words}" if most is not None else ""
    return [f"room is made by `{process.label(consumers[0])}`{does}"]
