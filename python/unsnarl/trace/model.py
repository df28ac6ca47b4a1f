"""The summary of a recorded process as frozen data, with stacks, lines and thread names looked up.

Names and units are those of the native summary (``crates/trace/src/summary.rs``), which
``docs/reference/trace-formats.md`` describes. Times are nanoseconds since the start of the
process's recording. Invariant: nothing here draws a conclusion.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, TypeVar

from unsnarl.trace import lock_lines, loops, main_module, source
from unsnarl.trace.loop_rounds import LoopRounds

STATES = ("running", "waiting", "lock", "io", "sleeping", "computing")
"""The states of a thread, in this order: holds the GIL; waits for the GIL; is blocked on a lock; is in
a call that released the GIL, and waits (I/O) or is short; is in ``time.sleep``; computes in C code
that released the GIL."""

RUNNING, WAITING, LOCK, IN_IO, SLEEPING, COMPUTING = range(6)

SEPARATOR = "\x1f"
"""Separates the words of the text about a program."""

PROCESSOR, COMPUTES = "a processor", "nothing, it computes"
"""What a thread waits for that could run, or runs in C code without the GIL: the sampler's names."""

PACKAGES = "-packages/"
"""Is part of the paths of installed libraries."""

WAITING_FILES = ("/queue.py", "/threading.py")
"""The files of the standard library in which threads wait for each other, and do no I/O."""

FILE_LOCK = "the lock of a file"
"""What a thread waits for in `flock` or `fcntl`: the sampler's name."""

C_LOCK = "a lock in C code"
"""What a thread waits for in a futex that is not the interpreter's: the sampler's name."""

MOST_IMPORTS = 5000
"""The imports of a process that the summary keeps."""

PAUSE = "a pause in C code"
"""What a thread waits for whose C code sleeps: the sampler's name."""

MOSTLY_PERMILLE = 500
"""The least part of a wait that the other thread waits as well, for the two to wait for each other."""

_FORKED = ("Popen._launch", "multiprocessing/popen_fork.py")
"""The function whose callers belong to the parent in a child that multiprocessing forked, and the end of its path."""

_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread; totals cover the whole recording, stretches the part whose records remain."""

    ident: int
    tid: int
    name: str | None
    begin_ns: int
    end_ns: int
    has_ended: bool
    running_ns: int
    waiting_ns: int
    on_lock_ns: int
    asleep_ns: int
    io_ns: int
    takes: int
    waits: int
    lock_waits: int
    wakeups: int
    longest_hold_ns: int
    longest_wait_ns: int
    forced_drops: int
    computing_ns: int
    stretches: list[tuple[int, int, int, int]]

    @property
    def label(self) -> str:
        """Return the name, or the number of a thread without one."""
        return self.name or f"thread {self.tid}"

    @property
    def totals_ns(self) -> tuple[int, int, int, int, int, int]:
        """Return the time in each of STATES."""
        off_the_gil = (self.on_lock_ns, self.io_ns, self.asleep_ns, self.computing_ns)
        return (self.running_ns, self.waiting_ns, *off_the_gil)


@dataclass(frozen=True, slots=True)
class Pair:
    """The waits of one thread that are attributed to another thread."""

    waiter: int
    holder: int
    count: int
    total_ns: int
    longest_ns: int
    median_ns: int
    holder_node: int
    waiter_node: int


@dataclass(frozen=True, slots=True)
class LongHold:
    """A hold of the GIL that other threads waited for, through several switch intervals."""

    thread: int
    begin_ns: int
    length_ns: int
    waited_ns: int
    victims: int
    node: int
    starved_ns: int = 0

    @property
    def ran_ns(self) -> int:
        """Return for how long, at most, the holder had a processor."""
        return self.length_ns - self.starved_ns


@dataclass(frozen=True, slots=True)
class WakeupGroup:
    """The waits with a similar number of other waiters, and their wake-ups."""

    waiters_from: int
    waiters_to: int | None
    waits: int
    wakeups: int
    waiters: int


@dataclass(frozen=True, slots=True)
class LockWaits:
    """The waits for a lock at one line that one thread ended by a release at one line."""

    wait_node: int
    waiter: int
    waiters: int
    releaser: int | None
    release_node: int
    holder_node: int
    holder_state: int
    holder_permille: int
    count: int
    timeouts: int
    guessed: int
    left_out: int
    total_ns: int
    left_out_ns: int
    longest_ns: int


@dataclass(frozen=True, slots=True)
class Import:
    """The import of a module."""

    name: str
    parent: int | None
    thread: int
    begin_ns: int
    total_ns: int
    self_ns: int
    processor_ns: int | None = None


@dataclass(frozen=True, slots=True)
class PeerWaits:
    """What a thread waited for in I/O at a stack, and how often it was seen there."""

    thread: int
    node: int
    peer: str
    count: int


@dataclass(frozen=True, slots=True)
class TaskWaits:
    """What tasks of an asyncio loop waited for at one stack, while the loop had nothing to run.

    Attributes:
        thread: the number of the loop's thread.
        is_inner: whether they waited for other tasks: for a lock, a queue, a result.
        idle_ns: the stack's share of the loop's idle time, which is divided among tasks that do not.
        task_ns: the time of all tasks together.
        waited_ns: the time in which at least one task waited.
        most: the most tasks at once.
        seen_ns: the idle time of the loop that was sampled; the other times are parts of it.
        stack: the lines, the innermost first.
    """

    thread: int
    is_inner: bool
    idle_ns: int
    task_ns: int
    waited_ns: int
    most: int
    seen_ns: int
    stack: list[Location]


@dataclass(frozen=True, slots=True)
class Rates:
    """Counts of events per interval of time."""

    bin_ns: int
    begin_ns: int
    hand_overs: list[int]
    wakeups: list[int]
    lock_waits: list[int]


@dataclass(frozen=True, slots=True)
class Location:
    """A line of Python."""

    file: str
    function: str
    line: int

    def __str__(self) -> str:
        """Return file, line and function as one text."""
        return f"{self.file}:{self.line} in {self.function}"

    @property
    def short(self) -> str:
        """Return the same text without the directory."""
        return f"{os.path.basename(self.file)}:{self.line} in {self.function}"


@dataclass(frozen=True)
class Process:
    """A process of the program."""

    pid: int
    parent: int
    started_ns: int
    started_real_ns: int
    length_ns: int
    is_complete: bool
    is_scheduled: bool
    is_counted: bool
    overwritten: int
    stacks_left_out: int
    lost: int
    executed_ns: int
    first_line_ns: int
    interval_ns: int
    thread_count: int
    text: str
    resolution_ns: int
    records_from_ns: int
    start_until_ns: int
    threads: list[Thread]
    pairs: list[Pair]
    long_holds: list[LongHold]
    wakeups: list[WakeupGroup]
    histogram: list[int]
    locks: list[LockWaits]
    imports: list[Import]
    rates: Rates
    locations: dict[int, Location]
    nodes: dict[int, tuple[int, int]]
    stacks: list[tuple[int, int, int, int]]
    samples: int
    peers: list[PeerWaits]
    sampled: list[tuple[int, int, int]]
    tasks: list[TaskWaits] = field(default_factory=list[TaskWaits])
    loop_rounds: LoopRounds = field(default_factory=LoopRounds)

    @property
    def command(self) -> list[str]:
        """Return the command line."""
        return self.text.split(SEPARATOR)[3:]

    @property
    def interpreter(self) -> str:
        """Return the implementation and its version."""
        return " ".join(self.text.split(SEPARATOR)[:2])

    @property
    def seen_ns(self) -> int:
        """Return the length of the part that is still recorded; pairs and lock waits are shares of it."""
        return max(self.length_ns - self.records_from_ns, 0)

    def seen_life_ns(self, thread: Thread) -> int:
        """Return how much of a thread's life lies in that part, as far as the thread's own records go back."""
        if not self.records_from_ns:
            return sum(thread.totals_ns)
        if not thread.stretches:
            return 0
        # Stretches follow each other without a gap.
        begin, end = thread.stretches[0][0], sum(thread.stretches[-1][:2])
        return max(end - max(begin, self.records_from_ns), 0)

    @functools.cached_property
    def _library(self) -> str:
        """The directory of the standard library."""
        words = self.text.split(SEPARATOR)
        return words[2] if len(words) > 2 and words[2] else "/nowhere"

    def stack(self, node: int) -> list[Location]:
        """Return the lines of a stack, the innermost first; none for node 0."""
        lines: list[Location] = []
        while node in self.nodes and len(lines) < 64:
            node, number = self.nodes[node]
            if number in self.locations and self.locations[number] != _CLEANUP:
                lines.append(self.locations[number])
        return lines

    @functools.cached_property
    def stacks_in(self) -> dict[tuple[int, int], list[tuple[int, int]]]:
        """The stacks of each thread in each state, with the time there; a thousand threads have many stacks."""
        result: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for number, state, node, time_ns in self.stacks:
            result[number, state].append((node, time_ns))
        return dict(result)

    @functools.cached_property
    def _lines(self) -> dict[int, tuple[Location | None, Location | None]]:
        """What ``_lines_of`` has returned: the same nodes are asked for again and again."""
        return {}

    def _lines_of(self, node: int) -> tuple[Location | None, Location | None]:
        if node not in self._lines:
            stack = self.own_stack(node)
            self._lines[node] = self.own_line(stack), self.program_line(loops.callback(stack))
        return self._lines[node]

    def line_of(self, node: int) -> Location | None:
        """Return the innermost line of a stack outside the standard library, or else the innermost line."""
        return self._lines_of(node)[0]

    def program_line_of(self, node: int) -> Location | None:
        """Return the innermost line of a stack that belongs to no library, or else what ``line_of`` returns."""
        return self._lines_of(node)[1]

    def own_stack(self, node: int) -> list[Location]:
        """Return the lines of a stack without those of the parent that forked this process, the innermost first."""
        return list(itertools.takewhile(lambda line: not _is_fork(line), self.stack(node)))

    def own_line(self, lines: list[Location]) -> Location | None:
        """Return the first line outside the standard library (without a file its caller's), or of the main module."""
        own = list(itertools.dropwhile(self.is_library, lines))
        if not own:
            return main_module.innermost_line(lines) or (lines[0] if lines else None)
        caller = next((line for line in own if not line.file.startswith("<")), own[0])
        return own[0] if PACKAGES in caller.file or self.is_library(caller) else caller

    def program_line(self, lines: list[Location]) -> Location | None:
        """Return the first line that belongs to no library, or else the first outside the standard library.

        The script that starts an installed command is a part of its library.
        """
        foreign = (self.is_library(line) or PACKAGES in line.file or _is_launcher(line) for line in lines)
        first = next((index for index, is_foreign in enumerate(foreign) if not is_foreign), 0)
        return self.own_line(lines[first:])

    def is_in_wait(self, node: int) -> bool:
        """Tell whether a stack ends in the standard library's functions that do nothing but wait for other threads.

        A thread there that seems to be in I/O has no processor, between the drop of the GIL and its wait for a lock.
        """
        stack = self.stack(node)
        return bool(stack) and stack[0].file.endswith(WAITING_FILES) and self.is_library(stack[0])

    def lacks_processor(self, number: int | None, node: int) -> bool:
        """Tell whether a thread that seems to be in I/O at a stack was mostly able to run, without a processor."""
        counts = {waits.peer: waits.count for waits in self.peers if (waits.thread, waits.node) == (number, node)}
        return 2 * counts.get(PROCESSOR, 0) > sum(counts.values())

    @functools.cached_property
    def scarce(self) -> frozenset[int]:
        """The stacks at which threads wait for a semaphore's permit that a thread which waits there itself gives back.

        A semaphore whose waiters never release it passes on signals or work. A permit that is lost has no release, but
        the source may have one.
        """
        waiters: dict[str, set[int]] = defaultdict(set)
        places: dict[int, str] = {}
        shared: set[str] = set()
        for number, state, node, _ in self.stacks:
            if state == LOCK and any(line.function == "Semaphore.acquire" for line in self.stack(node)[:3]):
                place = self.line_of(node)
                places[node] = str(place)
                waiters[places[node]].add(number)
                if place is not None and lock_lines.gives_back(place.file, place.line):
                    shared.add(places[node])
        shared |= {
            places[waits.wait_node]
            for waits in self.locks
            if waits.wait_node in places and waits.releaser in waiters[places[waits.wait_node]]
        }
        return frozenset(node for node, place in places.items() if place in shared)

    @functools.cached_property
    def handed(self) -> frozenset[int]:
        """The stacks at which threads wait for an item that another thread puts, and not for a lock that it holds.

        ``queue.SimpleQueue`` is C code, so its functions are on no stack: the lines say what they call, also where no
        item ever comes. And two threads that wait for each other without a timeout wait for no locks: that would be a
        deadlock.
        """
        timed = {str(self.line_of(waits.wait_node)) for waits in self.locks if waits.timeouts}
        mutual = {str(self.line_of(waits.wait_node)) for waits in self.locks if self._is_mutual(waits)}
        places = {str(self.line_of(waits.wait_node)) for waits in self.locks if self._puts(waits)} | (mutual - timed)
        nodes = {node for _, state, node, _ in self.stacks if state == LOCK and node}
        nodes |= {waits.wait_node for waits in self.locks if waits.wait_node}
        ended = {str(self.line_of(waits.wait_node)) for waits in self.locks if waits.releaser is not None}
        return frozenset(
            node
            for node in nodes
            if (place := str(self.line_of(node))) in places or self._takes_item(node, is_ended=place in ended)
        )

    def _takes_item(self, node: int, *, is_ended: bool) -> bool:
        """Tell whether a stack's innermost line takes an item, or waits for ever and acquires no lock."""
        innermost = next(iter(self.stack(node)), None)
        if innermost is None:
            return False
        file, line = innermost.file, innermost.line
        return lock_lines.takes_item(file, line) or (not is_ended and lock_lines.acquires(file, line) is False)

    def _puts(self, waits: LockWaits) -> bool:
        waits_at, released_at = self.line_of(waits.wait_node), self.line_of(waits.release_node)
        if waits_at is None or released_at is None:
            return False
        wait, release = (source.line(line.file, line.line) for line in (waits_at, released_at))
        return ".get(" in wait and ".put" in release

    def _is_mutual(self, waits: LockWaits) -> bool:
        is_waiting = waits.holder_state == LOCK and waits.holder_permille >= MOSTLY_PERMILLE
        return is_waiting and any(
            other.releaser == waits.waiter and other.wait_node == waits.holder_node
            for other in self.locks
            if other.wait_node and other.wait_node != waits.wait_node
        )

    def is_library(self, line: Location) -> bool:
        """Tell whether a line belongs to the standard library, or to the import system."""
        if line.file.startswith("<frozen") or PACKAGES in line.file:
            return line.file.startswith("<frozen")
        if line.file.startswith(self._library + "/"):
            return True
        # The recorder keeps the end of a long path.
        tail = "/" + "/".join(self._library.split("/")[-2:]) + "/"
        return not line.file.startswith(("/", "<")) and tail in "/" + line.file

    def label(self, number: int | None) -> str:
        """Return the name of a thread by its number."""
        return self.threads[number].label if number is not None and number < len(self.threads) else "?"


_CLEANUP = Location("__init__", "__init__", 0)
"""The interpreter's own frame between the call of a class and ``__init__`` (``_Py_InitCleanup`` of CPython)."""


def _is_launcher(line: Location) -> bool:
    directory, name = os.path.split(line.file)
    return os.path.basename(directory) == "bin" and "." not in name and line.function == "<module>"


def _is_fork(line: Location) -> bool:
    return line.function == _FORKED[0] and line.file.endswith(_FORKED[1])


def from_json(text: str) -> Process:
    """Return the process that a native summary describes."""
    data: dict[str, Any] = json.loads(text)
    contention = data.pop("contention")
    members: dict[str, Any] = data | {
        "threads": _entries(Thread, data["threads"]),
        "pairs": _entries(Pair, contention["pairs"]),
        "long_holds": _entries(LongHold, contention["long_holds"]),
        "wakeups": _entries(WakeupGroup, contention["wakeups"]),
        "histogram": contention["histogram"],
        "locks": _entries(LockWaits, data["locks"]),
        "imports": _entries(Import, data["imports"]),
        "peers": _entries(PeerWaits, data["peers"]),
        "rates": Rates(**data["rates"]),
        "locations": {int(number): Location(*fields) for number, fields in data["locations"].items()},
        "nodes": {int(number): (parent, location) for number, (parent, location) in data["nodes"].items()},
        "stacks": [tuple(stack) for stack in data["stacks"]],
        "sampled": [tuple(sample) for sample in data["sampled"]],
    }
    return Process(**members)


def _entries(kind: type[_Entry], entries: list[dict[str, Any]]) -> list[_Entry]:
    return [kind(**entry) for entry in entries]
