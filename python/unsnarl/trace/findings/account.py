"""Accounts for the whole time of a process and of its slowest thread, by what it was spent on and at which line.

Pure: a ``Process`` in, one finding out. Must never: leave time out. Invariant: the parts of an account add up to
the totals of its threads, and the printed shares to 100 %; time without a known line is a part without a line.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass

from unsnarl.trace import import_lines, lock_lines, loops, source
from unsnarl.trace.findings.finding import FINE, Finding, duration
from unsnarl.trace.findings.locks import is_for_work
from unsnarl.trace.model import (
    C_LOCK,
    COMPUTES,
    COMPUTING,
    IN_IO,
    LOCK,
    PACKAGES,
    RUNNING,
    SLEEPING,
    WAITING,
    Location,
    Process,
    Thread,
)

_ANY_SOCKET, _NAMED_SOCKET = "waiting for a socket", re.compile(r"waiting for (.*:[0-9]+|a Unix socket)")
"""The sampler's words for a socket of which it knows no more, and for others."""

MOST_PARTS = 5
"""Parts that are named; the others are one."""

LEAST_SHARE = 0.01
"""A smaller part is not named."""

SHOWN_SHARE = 0.05
"""The least part of a thread's time at a line, for the line to be shown."""

TYPICAL_SHARE = 0.1
"""The least share of a thread's waits of one kind that have a stack, to stand for those whose stack was left out."""

SHORT_SHARE = 0.1
"""The least share of a thread's life in calls that are only counted, to be a part of their own."""

_IN_LOOP = "idle in the event loop"

TASKS_SHARE = 0.2
"""The least share of a loop's idle time for which tasks wait at a line, to be named."""

_FOR_WORK = "waiting for work or for other threads"
IDLE = frozenset((_FOR_WORK, _IN_LOOP))
"""What a thread does that has nothing to do."""

RECORDER = tuple(
    f"unsnarl/trace/traced/{name}.py"
    for name in ("giving_way", "long_rounds", "tasks", "task_stacks", "timers", "trio_tasks")
)
"""The ends of the files whose functions sample an event loop's tasks, at most a hundredth of the time."""

OWN_THREADS = "threads of C code, or another process"
"""What the only thread of Python's waits for in a futex."""

_OTHER = "other"
IDLE_WEIGHT, SLEEPING_WEIGHT = 0.05, 0.01
"""How much idle time, and sleep, counts where the slowest thread is looked for; all other time counts in full."""

_FOR_CHILD = "waiting for a child process"
_FOR_DESCRIPTORS = "waiting for ready sockets or files"
_FOR_NETWORK = "waiting for the network"
_FOR_ROOM = "waiting for room in a queue between processes"
_IMPORTING = "importing"
_OWN_ROUND = "computing in the event loop itself"

_BY_FUNCTION = (
    ("multiprocessing/synchronize.py", "blocked on a lock between processes"),
    ("subprocess.py", _FOR_CHILD),
    ("popen_fork.py", _FOR_CHILD),
    ("popen_spawn_posix.py", _FOR_CHILD),
    ("multiprocessing/connection.py", "waiting for another process"),
    ("concurrent/futures/process.py", "waiting for another process"),
    ("selectors.py", _FOR_DESCRIPTORS),
    ("socketserver.py", _FOR_NETWORK),
    ("ssl.py", _FOR_NETWORK),
    ("socket.py", _FOR_NETWORK),
    ("http/client.py", _FOR_NETWORK),
)
"""Files of the standard library on the stack of a thread in I/O, and what it waits for there."""


PUTS_IN, PUTS = "multiprocessing/queues.py", ("Queue.put", "JoinableQueue.put")
"""The end of the file, and the functions in it, that wait for room in a queue between processes, in C code."""

_BY_METHOD = (
    ("multiprocessing/synchronize.py", "Condition.wait", "waiting for another process"),
    *((PUTS_IN, function, _FOR_ROOM) for function in PUTS),
    ("multiprocessing/pool.py", "Pool._handle_workers", _FOR_WORK),
)
"""Files and functions that tell more than the files of `_BY_FUNCTION`, which their stacks have too."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the time: what it was spent on, and where, as far as that is known."""

    what: str
    place: Location | None
    time_ns: int

    @property
    def words(self) -> str:
        """Return the part in words."""
        if self.what == _IMPORTING and self.place is not None:
            return f"importing `{self.place.file}`"
        if self.place is None:
            return self.what
        if self.what == _IN_LOOP:
            where = f"{self.place.file.rpartition('/')[2]}:{self.place.line}"
            return f"{self.what} while tasks wait in `{self.place.function}` ({where})"
        return f"{self.what} in `{self.place.function}` ({self.place.file.rpartition('/')[2]}:{self.place.line})"


def findings(process: Process) -> list[Finding]:
    """Return the finding that says where the time of a process went; none for a process without time."""
    every = range(len(process.threads))
    whole = parts_of(process, list(every))
    if not whole:
        return []
    slowest = slowest_thread(process)
    shown = parts_of(process, [slowest])
    details: list[str] = []
    if len(process.threads) > 1:
        details.append(f"so {len(process.threads):,} threads together; `{process.label(slowest)}`: {in_words(shown)}")
    place = _line_worth_showing(process, shown) or _line_worth_showing(process, whole)
    code = _code(process, place) if place is not None else ""
    if place is not None and code:
        inner = _inner_line(process, place)
        within = f" (mostly in `{inner.function}`, {inner.file.rpartition(PACKAGES)[2]}:{inner.line})" if inner else ""
        details.append(f"{place.file.rpartition('/')[2]}:{place.line}: {code[:120]}{within}")
    return [
        Finding(
            "time",
            FINE,
            f"of {duration(process.length_ns)}: {in_words(whole)}",
            details,
            process.label(slowest),
            str(place) if place is not None else None,
            {part.words: part.time_ns for part in whole[:MOST_PARTS]},
        )
    ]


def _line_worth_showing(process: Process, parts: list[Part]) -> Location | None:
    """Return the line of the largest part at a line; one at which the program does something before any other."""
    least_ns = SHOWN_SHARE * sum(part.time_ns for part in parts)
    worth = [part for part in parts if part.place is not None and part.what != _IMPORTING and part.time_ns >= least_ns]
    does = (part for part in worth if part.what not in IDLE or not _is_behind_the_scenes(process, part))
    return next((part.place for part in (*does, *worth)), None)


def _code(process: Process, place: Location) -> str:
    """Return the source of a line, which the command line has where the program is that of ``-c``."""
    if place.file == source.OF_COMMAND:
        return source.line_of_command(process.command, place.line, place.function).strip()
    return source.line(place.file, place.line).strip()


def _inner_line(process: Process, place: Location) -> Location | None:
    """Return the line of a library that takes most of the time of a line of the program, if a library takes most."""
    times: dict[Location | None, int] = defaultdict(int)
    for _, state, node, time_ns in process.stacks:
        if node and state != WAITING and process.program_line_of(node) == place:
            times[process.line_of(node)] += time_ns
    inner = max(times, key=lambda line: times[line], default=None)
    return inner if inner != place and 2 * times[inner] > sum(times.values()) else None


def slowest_thread(process: Process) -> int:
    """Return the number of the thread that was busy for longest: it had something to do, or waited for something."""

    def busy_ns(number: int) -> float:
        return sum(part.time_ns * _weight(process, part) for part in parts_of(process, [number]))

    # A thousand threads have at most this many candidates: the longest lives.
    numbers = sorted(range(len(process.threads)), key=lambda number: -sum(process.threads[number].totals_ns))[:64]
    return max(numbers, key=busy_ns)


def _weight(process: Process, part: Part) -> float:
    """Return how much a part of a thread's time counts, for the thread to be the slowest.

    A thread that only sleeps is slow if no other thread does anything; so is one that only the standard library uses,
    for a pool or a queue, and one that waits for the others while these do nearly nothing.
    """
    if part.what in IDLE:
        return 0.0 if _is_behind_the_scenes(process, part) else IDLE_WEIGHT
    return SLEEPING_WEIGHT if part.what == "sleeping" or _is_behind_the_scenes(process, part) else 1.0


def _is_behind_the_scenes(process: Process, part: Part) -> bool:
    return part.what.startswith("waiting for") and part.place is not None and process.is_library(part.place)


def parts_of(process: Process, numbers: list[int]) -> list[Part]:
    """Return the parts of the time of some threads, the longest first."""
    times: dict[tuple[str, Location | None], int] = defaultdict(int)
    stacks: dict[int, list[tuple[int, int, int]]] = {number: [] for number in numbers}
    for number, state, node, time_ns in process.stacks:
        if number in stacks:
            stacks[number].append((state, node, time_ns))
    imports = _imports(process)
    peers: dict[int, dict[int, list[tuple[str, int]]]] = defaultdict(lambda: defaultdict(list))
    for waits in process.peers:
        peers[waits.thread][waits.node].append((waits.peer, waits.count))
    for number in numbers:
        own = _parts_of_thread(
            process, process.threads[number], stacks[number], imports.get(number, {}), peers.get(number, {})
        )
        for key, time_ns in own.items():
            times[key] += time_ns
    parts = [Part(what, place, time_ns) for (what, place), time_ns in _by_place(times).items() if time_ns > 0]
    return sorted(parts, key=lambda part: (-part.time_ns, part.words))


def _by_place(times: dict[tuple[str, Location | None], int]) -> dict[tuple[str, Location | None], int]:
    """Merge what a thread did at several lines, and waits for sockets of which some have no name.

    Where one has a name, the others of the line are most probably of the same peer; where several have, nobody knows.
    """
    result = _by_function(times)
    for what, place in list(result):
        named = [key for key in result if key[1] == place and _NAMED_SOCKET.fullmatch(key[0])]
        if what == _ANY_SOCKET and len(named) == 1:
            result[named[0]] += result.pop((what, place))
    return result


def _by_function(times: dict[tuple[str, Location | None], int]) -> dict[tuple[str, Location | None], int]:
    """Merge what a function did at several lines, where these are samples, and name the line with most of it."""
    result: dict[tuple[str, Location | None], int] = {}
    lines: dict[tuple[str, str, str], list[tuple[int, Location]]] = defaultdict(list)
    for (what, place), time_ns in times.items():
        if what in _SAMPLED and place is not None:
            lines[what, place.file, place.function].append((time_ns, place))
        else:
            result[what, place] = time_ns
    for (what, *_), group in lines.items():
        _, place = max(group, key=lambda entry: (entry[0], -entry[1].line))
        result[what, place] = sum(time_ns for time_ns, _ in group)
    return result


def _parts_of_thread(
    process: Process,
    thread: Thread,
    stacks: list[tuple[int, int, int]],
    imports: dict[str, int],
    peers: dict[int, list[tuple[str, int]]],
) -> dict[tuple[str, Location | None], int]:
    left = list(thread.totals_ns)
    kept = [sum(time_ns for of, node, time_ns in stacks if of == state and node) for state in range(len(left))]
    times: dict[tuple[str, Location | None], int] = defaultdict(int)
    short_ns = _short_ns(process, thread, stacks)
    wholes = list(thread.totals_ns)
    wholes[IN_IO] -= short_ns
    imported = 0
    for state, node, time_ns in stacks:
        if not node:
            continue
        time_ns = time_ns * _known_ns(state, wholes[state], kept[state]) // max(kept[state], 1)  # noqa: PLW2901
        left[state] -= time_ns
        if state in (RUNNING, IN_IO) and imports and _is_importing(process, node):
            imported += time_ns
        else:
            what = _what(process, state, node)
            for peer, part_ns in _by_peer(time_ns, peers.get(node, []) if state == IN_IO else []):
                times[_waiting_for(process, node, what[0], peer), what[1]] += part_ns
    # Imports without a stack are running, or read files.
    rest = max(sum(imports.values()) - imported, 0)
    for state in (RUNNING, IN_IO):
        part = min(rest, left[state])
        left[state], rest, imported = left[state] - part, rest - part, imported + part
    _spread(times, imports, imported)
    for place, time_ns in _short_calls(process, stacks, min(short_ns, left[IN_IO])):
        times[place] += time_ns
        left[IN_IO] -= time_ns
    _name_tasks(process, thread, times)
    for state, time_ns in enumerate(left):
        times[_WITHOUT_STACK[state], None] += max(time_ns, 0)
    return times


def _name_tasks(process: Process, thread: Thread, times: dict[tuple[str, Location | None], int]) -> None:
    """Divide the idle time of an event loop among the lines at which its tasks wait, as far as these are a part of it.

    Tasks that wait for other tasks are left out.
    """
    places: dict[Location | None, int] = defaultdict(int)
    for waits in process.tasks:
        if process.threads[waits.thread] is thread:
            places[process.program_line(waits.stack)] += waits.idle_ns
    whole, idle_ns = sum(places.values()), times.get((_IN_LOOP, None), 0)
    for place, part_ns in places.items():
        if place is not None and part_ns >= TASKS_SHARE * whole > 0:
            part = idle_ns * part_ns // whole
            times[_IN_LOOP, place] += part
            times[_IN_LOOP, None] -= part


def _known_ns(state: int, whole_ns: int, kept_ns: int) -> int:
    """Return for how much of a thread's time in a state its stacks stand.

    Rounding and merged records may make the recorded stretches longer than the totals. Of waits of one kind, those
    without a stack are taken for the others, if those are a part that counts.
    """
    is_typical = state in (LOCK, IN_IO, SLEEPING) and kept_ns >= TYPICAL_SHARE * whole_ns
    return whole_ns if is_typical else min(whole_ns, kept_ns)


def _short_ns(process: Process, thread: Thread, stacks: list[tuple[int, int, int]]) -> int:
    """Return the time in calls so short that they are only counted: the totals have it, and no stretch."""
    time_ns = thread.io_ns - sum(time_ns for state, _, time_ns in stacks if state == IN_IO)
    is_whole = not process.records_from_ns and not process.lost
    return time_ns if is_whole and time_ns >= SHORT_SHARE * sum(thread.totals_ns) else 0


def _short_calls(
    process: Process, stacks: list[tuple[int, int, int]], short_ns: int
) -> list[tuple[tuple[str, Location | None], int]]:
    """Place short calls where their thread computes in between."""
    running = [(node, time_ns) for state, node, time_ns in stacks if state == RUNNING and node]
    whole = sum(time_ns for _, time_ns in running)
    if not whole or not short_ns:
        return []
    return [(_calls(process, node), short_ns * time_ns // whole) for node, time_ns in running]


def _calls(process: Process, node: int) -> tuple[str, Location | None]:
    """Return what short calls are for, and the line that makes them: a loop's own look into its selector."""
    if loops.is_own_round(process.own_stack(node)):
        return _OWN_ROUND, None
    return _SHORT_CALLS, process.program_line_of(node)


def _by_peer(time_ns: int, peers: list[tuple[str, int]]) -> list[tuple[str | None, int]]:
    """Divide the time of I/O at one stack among its peers; the remainder of the division goes to the most frequent."""
    if not peers:
        return [(None, time_ns)]
    whole = sum(count for _, count in peers)
    most, *others = sorted(peers, key=lambda entry: -entry[1])
    parts: list[tuple[str | None, int]] = [(peer, time_ns * count // whole) for peer, count in others]
    return [(most[0], time_ns - sum(part for _, part in parts)), *parts]


def _waiting_for(process: Process, node: int, what: str, peer: str | None) -> str:
    """Return what a thread waits for, with the peer, unless it is known better.

    Where no other thread of Python's competes for it, what looks like a lock in C code is a query engine, for example,
    whose own threads compute while their caller waits; that is, unless the line acquires a lock between processes.
    """
    if not peer or what not in (_WITHOUT_STACK[IN_IO], _FOR_DESCRIPTORS, _FOR_NETWORK):
        return what
    if peer == COMPUTES:
        return _WITHOUT_STACK[COMPUTING]
    if peer == C_LOCK and len(process.threads) == 1:
        inner = process.own_stack(node)[0]
        return f"waiting for {peer if lock_lines.acquires(inner.file, inner.line) else OWN_THREADS}"
    return f"waiting for {peer}"


def _spread(times: dict[tuple[str, Location | None], int], imports: dict[str, int], imported: int) -> None:
    """Divide the time of imports among the modules; the remainder of the division goes to the last."""
    whole, rest = max(sum(imports.values()), 1), imported
    for index, (name, time_ns) in enumerate(imports.items()):
        part = rest if index == len(imports) - 1 else min(imported * time_ns // whole, rest)
        times[_IMPORTING, Location(name, "", 0)] += part
        rest -= part


def _imports(process: Process) -> dict[int, dict[str, int]]:
    """Return the imports of each thread by the package that the program imported."""
    result: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for entry in process.imports:
        if entry.parent is None:
            result[entry.thread][entry.name.partition(".")[0]] += entry.total_ns
    return result


def _is_importing(process: Process, node: int) -> bool:
    return import_lines.is_importing(process.stack(node))


_WITHOUT_STACK = {
    RUNNING: "computing",
    WAITING: "waiting for the GIL",
    LOCK: "blocked on locks",
    IN_IO: "in I/O",
    SLEEPING: "sleeping",
    COMPUTING: "computing in C code without the GIL",
}


_SHORT_CALLS = "in short calls"

_SAMPLED = frozenset((_WITHOUT_STACK[RUNNING], _SHORT_CALLS))
"""What is placed by samples, whose line within a function is partly chance."""


def _what(process: Process, state: int, node: int) -> tuple[str, Location | None]:
    """Return what a thread does in a state at a stack, and the line that is worth naming."""
    what = _WITHOUT_STACK[state]
    if is_recording(process, node):
        return "recording", None
    if state in (WAITING, RUNNING):
        return _computing(process, node) if state == RUNNING else (what, None)
    if state == LOCK or (state == IN_IO and process.is_in_wait(node)):
        if is_for_work(process, node):
            return _FOR_WORK, process.program_line_of(node)
        return "blocked on a lock", process.program_line_of(node)
    waits_for = _waits_for(process.own_stack(node)) if state in (IN_IO, SLEEPING) else ""
    if waits_for == _IN_LOOP:
        return waits_for, None  # eventlet's hub sleeps where it has no socket to wait for
    if state == IN_IO or waits_for == _FOR_CHILD:
        what = waits_for  # `Popen.wait` with a timeout sleeps between two looks
    return what, process.program_line_of(node)


def _computing(process: Process, node: int) -> tuple[str, Location | None]:
    if loops.is_own_round(process.own_stack(node)):
        return _OWN_ROUND, None
    return _WITHOUT_STACK[RUNNING], process.program_line_of(node)


def is_recording(process: Process, node: int) -> bool:
    """Tell whether a thread samples its event loop's tasks for the recording at a stack: that is not the program's."""
    return any(line.file.endswith(RECORDER) for line in process.stack(node)[:3])


def idle_ns(process: Process, number: int) -> int:
    """Return for how long a thread waited in an event loop's selector."""
    stacks = process.stacks_in.get((number, IN_IO), ())
    return sum(time_ns for node, time_ns in stacks if is_idle_in_loop(process, node))


def _waits_for(stack: list[Location]) -> str:
    if loops.selecting(stack) is not None:
        return _IN_LOOP
    for name, method, what in _BY_METHOD:
        if any(line.function == method and line.file.endswith(name) for line in stack[:6]):
            return what
    for name, what in _BY_FUNCTION:
        if any(line.file.endswith("/" + name) or line.file == name for line in stack[:6]):
            return what
    return "in I/O"


def is_idle_in_loop(process: Process, node: int) -> bool:
    """Tell whether a thread in I/O, or asleep, at a stack waits in an event loop's selector."""
    return _waits_for(process.stack(node)) == _IN_LOOP


def in_words(parts: list[Part]) -> str:
    """Return the largest parts with shares that add up to 100 %."""
    whole = sum(part.time_ns for part in parts)
    named = [part for part in parts if part.time_ns >= LEAST_SHARE * whole][:MOST_PARTS]
    words = [(part.words, part.time_ns) for part in named]
    rest = whole - sum(part.time_ns for part in named)
    if rest:
        words.append((_OTHER, rest))
    percents = shares([time_ns for _, time_ns in words])
    return ", ".join(f"{percent} % {text}" for percent, (text, _) in zip(percents, words, strict=True) if percent)


def shares(times: list[int]) -> list[int]:
    """Return whole percents that add up to 100: the largest remainders are rounded up."""
    whole = sum(times)
    if not whole:
        return [0] * len(times)
    result = [100 * time_ns // whole for time_ns in times]
    by_remainder = sorted(range(len(times)), key=lambda index: -(100 * times[index] % whole))
    for index in by_remainder[: 100 - sum(result)]:
        result[index] += 1
    return result
