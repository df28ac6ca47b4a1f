"""Findings about queues, of threads and between processes, whose producers wait for consumers.

Pure: a ``Process`` in, findings out.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from unsnarl.trace.findings import stuck
from unsnarl.trace.findings.account import PUTS, PUTS_IN, parts_of
from unsnarl.trace.findings.finding import NOTABLE, SEVERE, Finding, Remedy, duration, of_life
from unsnarl.trace.model import IN_IO, LOCK, Process, Thread

LEAST_NS = 100_000_000
LEAST_SHARE = 0.3
"""The shortest wait for room of one thread, in all and as a share of its life."""

_FEEDS, _SENDS, _JOINS = "Queue._feed", "Connection._send", "Queue._finalize_join"
"""The functions that write a queue's items into its pipe, that wait for room there, and for the thread that does so."""

_AT_EXIT, _OF_PROCESSES = "_exit_function", (PUTS_IN, "multiprocessing/connection.py", "multiprocessing/util.py")
"""The function below which a process at its end does that, and the ends of the files of all these."""

UNREAD_SHARE = 0.1
"""The least share of the process's life that it waits so."""

_PUT, _QUEUES = "Queue.put", "/queue.py"
_WAIT, _THREADING = "Condition.wait", "/threading.py"


def findings(process: Process) -> list[Finding]:
    """Return findings about the queues of the modules `queue` and `multiprocessing`."""
    return [*full(process), *unread(process), *unfinished(process)]


def full(process: Process) -> list[Finding]:
    """Return the lines at which threads wait long for room in a queue, the longest wait first."""
    times: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for number, state, node, time_ns in process.stacks:
        if state == LOCK and _is_in_put(process, node):
            times["a queue", str(process.line_of(node))][number] += time_ns
        elif state == IN_IO and _is_in_put_between_processes(process, node):
            times["a queue between processes", str(process.program_line_of(node))][number] += time_ns
    found = [_full(process, what, place, by_thread) for (what, place), by_thread in times.items()]
    return sorted((one for one in found if one is not None), key=lambda one: -int(one.figures["longest_ns"]))


def unread(process: Process) -> list[Finding]:
    """Find a process that has come to its end, and waits until somebody reads what it has put into a queue."""
    sending: dict[int, int] = defaultdict(int)
    joining: dict[int, int] = defaultdict(int)
    for number, state, node, time_ns in process.stacks:
        if state not in (LOCK, IN_IO):
            continue
        functions = {line.function for line in process.stack(node) if line.file.endswith(_OF_PROCESSES)}
        if {_FEEDS, _SENDS} <= functions:
            sending[number] += time_ns
        elif {_JOINS, _AT_EXIT} <= functions:
            joining[number] += time_ns
    waited_ns = min(max(sending.values(), default=0), max(joining.values(), default=0))
    if waited_ns < max(stuck.LEAST_NS, UNREAD_SHARE * process.length_ns):
        return []
    feeder, joiner = (max(times, key=lambda number: times[number]) for times in (sending, joining))
    return [
        Finding(
            "unread-queue",
            SEVERE if 2 * waited_ns > process.length_ns else NOTABLE,
            f"the process was at its end for {duration(waited_ns)}, and waited until what it had put into a queue "
            "between processes was read",
            [
                f"`{process.label(joiner)}` waits for `{process.label(feeder)}`, for whose data the pipe has no room",
                "a process that waits for such a process (`join`) before it reads the queue waits for ever",
            ],
            process.label(joiner),
            None,
            {"waited_ns": waited_ns},
            Remedy(
                "unsnarl will not help here: read the queue before `join`, or let the process that has put call "
                "`cancel_join_thread()` if what is left may be lost"
            ),
        )
    ]


def unfinished(process: Process) -> list[Finding]:
    """Find a thread that waits until the end for the items of a queue, while no other thread does anything.

    Those that took items have ended, or wait for more: somebody has not called ``task_done`` for each.
    """
    last = {number: _wait_until_the_end(process, thread) for number, thread in enumerate(process.threads)}
    joiners = {number: node for number, node in last.items() if node and _is_in(process, node, "Queue.join")}
    alive = [number for number in last if not process.threads[number].has_ended and number not in joiners]
    takers = _takers(process)
    if not joiners or not takers or not all(last[number] for number in alive):
        return []
    joiner, node = next(iter(joiners.items()))
    place = str(process.program_line_of(node))
    ended = sorted((process.threads[number] for number in takers - set(alive)), key=lambda thread: thread.end_ns)
    if ended:
        why = f"`{ended[-1].label}`, which took items, ended {duration(process.length_ns - ended[-1].end_ns)} before"
    else:
        why = f"`{process.label(min(takers))}`, which takes items, waits for more"
    return [
        Finding(
            "unfinished-queue",
            SEVERE,
            f"thread `{process.label(joiner)}` waits until the end for the items of a queue at {place}, and no other "
            "thread does anything",
            [why],
            process.label(joiner),
            place,
            {"ended": len(ended)},
            Remedy(
                "unsnarl will not help here: call `task_done` for each item, in a `finally` block: an exception must "
                "not pass it by, or end the thread"
            ),
        )
    ]


def _takers(process: Process) -> set[int]:
    """Return the threads that have waited for an item of a queue."""
    return {number for number, state, node, _ in process.stacks if state == LOCK and _is_in(process, node, "Queue.get")}


def _wait_until_the_end(process: Process, thread: Thread) -> int:
    """Return the stack at which a thread is blocked for long until the end of the recording; 0 if it is not."""
    _, state, node = stuck.until_the_end(process, thread)
    return node if node and (state == LOCK or process.is_in_wait(node)) else 0


def _is_in(process: Process, node: int, function: str) -> bool:
    return any(line.function == function and line.file.endswith(_QUEUES) for line in process.stack(node)[:3])


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
    what_they_did, consumers = _consumers(process, place, set(by_thread))
    gone_ns = _gone_ns(process, thread, consumers)
    is_gone = 2 * gone_ns > longest_ns
    return Finding(
        "full-queue",
        NOTABLE,
        f"{what} is full: {who} {'wait' if others else 'waits'} for room at {place}, for up to "
        f"{duration(longest_ns)}: {of_life(process, longest_ns, sum(thread.totals_ns))}",
        [_about_gone(process, what_they_did, consumers, gone_ns)]
        if is_gone
        else _about(process, what_they_did, consumers),
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


_WOKE = "that had woken it"
"""What is known of threads that ended waits of a producer which were too short to have a stack."""

_SLOWER = Remedy(
    "unsnarl will not help here: the consumers are slower. Make their work shorter, or have more of them where they "
    "wait for something; a larger queue only helps against bursts"
)
_GONE = Remedy(
    "unsnarl will not help here: nobody takes items any more. Find out why the consumer ended (an exception in its "
    "thread?), and let producers notice that"
)


def _consumers(process: Process, place: str, producers: set[int]) -> tuple[str, list[int]]:
    """Return the threads that made room for those that waited at a line, the most frequent first, and what is known.

    Where consumers were the faster ones, no such wait is known: then the ones whose waits for an item the same
    producers have ended; else, as waits of microseconds have no stack, all that have ended such waits of a producer
    more than once: a thread that it starts ends one.
    """
    made, took, woke = Counter[int](), Counter[int](), Counter[int]()
    are_named = True
    for waits in process.locks:
        if waits.releaser is not None and str(process.line_of(waits.wait_node)) == place:
            made[waits.releaser] += waits.count
        elif waits.releaser in producers and _is_in(process, waits.wait_node, "Queue.get"):
            took[waits.waiter] += waits.count
            are_named &= waits.waiters == 1
        elif waits.releaser is not None and waits.waiter in producers and not waits.wait_node and waits.count > 1:
            woke[waits.releaser] += waits.count
    if not are_named:
        took.update(_takers(process))  # of several that waited, only the one that waited longest is named
    known = {"that made room": made, "that took items": took, _WOKE: woke}
    what = next((what for what, counts in known.items() if counts), "")
    return what, [number for number, _ in known.get(what, woke).most_common()]


def _gone_ns(process: Process, producer: Thread, consumers: list[int]) -> int:
    """Return for how long a producer lived on when all consumers had ended; 0 if one lives, or none is known."""
    threads = [process.threads[number] for number in consumers]
    if not threads or not all(thread.has_ended for thread in threads):
        return 0
    end_ns = producer.end_ns if producer.has_ended else process.length_ns
    return max(end_ns - max(thread.end_ns for thread in threads), 0)


def _about_gone(process: Process, what: str, consumers: list[int], gone_ns: int) -> str:
    last = max((process.threads[number] for number in consumers), key=lambda thread: thread.end_ns)
    return f"the last thread {what}, `{last.label}`, had ended {duration(gone_ns)} before the wait was over"


def _about(process: Process, what: str, consumers: list[int]) -> list[str]:
    """Return in words what the thread does most that made room most often."""
    if not consumers or what == _WOKE:
        return []
    most = next(iter(parts_of(process, consumers[:1])), None)
    does = f", which spends most of its time {most.words}" if most is not None else ""
    return [f"room is made by `{process.label(consumers[0])}`{does}"]
