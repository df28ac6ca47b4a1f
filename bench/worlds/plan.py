"""Every case of the matrix: a program or a scene, its arguments, and the variants it is run in. Data, no behaviour.

Invariant: the first two variants of every case are the same stock command, so that its noise against itself is known.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from bench.primitives.scene import OURS, STANDARD
from bench.worlds.scene import scenes

STOCK, AGAIN, RUN, PATCH, PRIMITIVE = "stock", "stock again", "run", "run --patch", "unsnarl's class"
STARTS = "starts.py"
PROGRAMS = Path(__file__).with_name("programs")
UNSNARL = str(Path(sys.executable).with_name("unsnarl"))

ONE_THREAD = "import threading; thread = threading.Thread(target=int); thread.start(); thread.join()"
"""The shortest program that has the scheduler installed, which happens at the first thread."""

IDLE_WAITERS_CPU = 1 / 1.05
"""The least ratio of processor time (stock over variant) where threads mostly wait."""


class Case(NamedTuple):
    """One thing to measure."""

    name: str
    words: tuple[str, ...]
    """The program's file and its arguments, or the scene."""
    variants: tuple[str, ...] = (STOCK, AGAIN, RUN, PATCH)
    judged: str = "rate_per_s"
    """The figure that decides: a rate, or ``cpu_us`` where the clock gives the rate."""
    started: tuple[str, ...] = ()
    """Arguments of an interpreter, where the variant is how the program's children are started, and not it itself."""
    needs: tuple[str, ...] = ()
    """Modules without which the case is left out."""
    limit_s: float = 120.0

    def missing(self) -> list[str]:
        """Return what the case needs and this environment does not have."""
        return [module for module in self.needs if find_spec(module) is None]

    def command(self, variant: str) -> list[str]:
        """Return the command of a variant."""
        if variant == PRIMITIVE:
            return [sys.executable, "-m", "bench.worlds.scene", *self.words, OURS]
        if PRIMITIVE in self.variants:
            return [sys.executable, "-m", "bench.worlds.scene", *self.words, STANDARD]
        program = [str(PROGRAMS / self.words[0]), *self.words[1:]]
        if self.started:
            starter = [UNSNARL, "run"] if variant == RUN else [sys.executable]
            return [sys.executable, *program, *starter, *self.started]
        if variant == RUN:
            return [UNSNARL, "run", *program]
        if variant == PATCH:
            return [UNSNARL, "run", "--patch", *program]
        return [sys.executable, *program]


def _case(name: str, *words: str, needs: tuple[str, ...] = (), judged: str = "rate_per_s") -> Case:
    return Case(name, words, needs=needs, judged=judged)


def program_cases() -> list[Case]:
    """Return real programs that take a lock, hand work over, wait, or compute.

    Those that wait run for seconds: their processor time is the process's, of which a start has a row of its own.
    """
    return [
        _case("logging, 50 threads, one FileHandler", "logs.py", "file", "50", "500"),
        _case("logging, 4 threads, one FileHandler", "logs.py", "file", "4", "5000"),
        _case("logging, 50 threads, QueueHandler", "logs.py", "queue", "50", "400"),
        _case("ThreadPoolExecutor.map, short tasks", "pools.py", "map", "20000"),
        _case("concurrent.futures, 64 workers", "pools.py", "submit", "10000"),
        _case("asyncio.to_thread", "pools.py", "to_thread", "8000"),
        _case("loop.run_in_executor", "pools.py", "run_in_executor", "8000"),
        _case("multiprocessing.Pool", "pools.py", "processes", "20000"),
        _case("sqlite3, 16 threads", "stores.py", "sqlite", "16", "600"),
        _case("SQLAlchemy QueuePool, 16 threads", "stores.py", "sqlalchemy", "16", "200", needs=("sqlalchemy",)),
        _case("urllib3 pool, 16 threads", "stores.py", "urllib3", "16", "100", needs=("urllib3",)),
        _case("print, 20 threads", "shared.py", "print", "20", "5000"),
        _case("random under a Lock, 20 threads", "shared.py", "random", "20", "20000"),
        _case("cachetools under an RLock, 16 threads", "shared.py", "cache", "16", "10000", needs=("cachetools",)),
        _case("a counter under a Lock, 50 threads", "shared.py", "counter", "50", "20000"),
        _case("a Queue fed every millisecond", "waits.py", "queue", "5", judged="cpu_us"),
        _case("50 threads wait for an Event, 10 ms", "waits.py", "event", "5", judged="cpu_us"),
        _case("20 threads poll a Queue, 1 ms", "waits.py", "poll", "5", judged="cpu_us"),
        _case("threads started and joined, one by one", "chains.py", "threads", "20000"),
        _case("four threads pass items by Queue(10)", "chains.py", "stages", "80000"),
        _case("Condition.notify_all to 20 threads", "chains.py", "notify", "3000"),
        _case("run_coroutine_threadsafe, 5 threads", "chains.py", "loop", "20000"),
        _case("numpy, 4 threads", "computing.py", "numpy", needs=("numpy",)),
        _case("sorted, 4 threads", "computing.py", "sort"),
        _case("json.loads, 4 threads", "computing.py", "json"),
        _case("zlib, 4 threads", "computing.py", "zlib"),
        *(_case(f"main computes, {n} threads mostly wait", "computing.py", "main", str(n)) for n in (1, 4, 16)),
        *(_case(f"main computes, {n} threads saturate", "computing.py", "main-saturating", str(n)) for n in (1, 4, 16)),
    ]


def server_cases() -> list[Case]:
    """Return threaded servers without CPU-bound threads."""
    servers = (("stdlib", ()), ("gunicorn", ("gunicorn",)), ("waitress", ("waitress",)), ("cheroot", ("cheroot",)))
    return [
        _case(f"server, {server}, c = {connections}", "servers.py", server, str(connections), "1.5", needs=needs)
        for server, needs in servers
        for connections in (10, 50)
    ]


def start_cases() -> list[Case]:
    """Return the start of an interpreter with nothing to do, with one thread, and as a child that inherits."""
    three = (STOCK, AGAIN, RUN)
    return [
        Case("start: -c pass", (STARTS, "40"), three, judged="cpu_us", started=("-c", "pass")),
        Case("start: one thread", (STARTS, "40"), three, judged="cpu_us", started=("-c", ONE_THREAD)),
        Case("start: a child's -c pass", (STARTS, "40"), three, judged="cpu_us"),
    ]


def scene_cases() -> list[Case]:
    """Return the scenes of `bench.primitives` that the standard library plays, too."""
    return [Case(f"primitive: {name}", (name,), variants=(STOCK, AGAIN, PRIMITIVE)) for name in scenes()]


def cases() -> list[Case]:
    """Return every case."""
    return [*program_cases(), *server_cases(), *start_cases(), *scene_cases()]
