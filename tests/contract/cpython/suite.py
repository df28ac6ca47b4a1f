"""Which of CPython's own tests are run, and under which names each version keeps them.

Invariant: a version that lacks a test of this list is distinguished from one that
fails it: a missing test is left out by name, never silently.
"""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import NamedTuple


class Module(NamedTuple):
    """One test module, run in a process of its own."""

    name: str
    """As `python -m test` takes it."""
    match: tuple[str, ...] = ()
    """Patterns of the tests that are run; all of them without any."""
    resources: tuple[str, ...] = ()
    """The resources that regrtest's tests may use only with ``-u``."""

    @property
    def title(self) -> str:
        """Name it in reports."""
        return f"{self.name} [{' '.join(self.match)}]" if self.match else self.name


Choice = tuple[Module, ...]
"""The same tests under the names of several versions, newest first."""

QUICK: tuple[Choice, ...] = (
    (Module("test_thread"),),
    (Module("test_threading"),),
    (Module("test_threading_local"),),
    (Module("test_threadsignals"),),
    (Module("test_queue"),),
    (Module("test_sched"),),
    (Module("test_fork1"),),
    (Module("test_threadedtempfile"),),
    (Module("test_concurrent_futures.test_thread_pool"), Module("test_concurrent_futures", ("ThreadPool*Test",))),
    (Module("test_asyncio.test_locks"),),
    (Module("test_asyncio.test_queues"),),
    (Module("test_socketserver", resources=("network",)),),
)
"""Chosen so that both ways together take less than four minutes on two cores."""

FULL: tuple[Choice, ...] = (
    *QUICK,
    (Module("test_import"),),
    (Module("test_faulthandler"),),
    (Module("test_signal"),),
    (Module("test_subprocess"),),
    (Module("test_multiprocessing_fork.test_threads"), Module("test_multiprocessing_fork", ("WithThreads*",))),
    (Module("test_multiprocessing_spawn.test_threads"), Module("test_multiprocessing_spawn", ("WithThreads*",))),
    (Module("test_multiprocessing_fork.test_processes"), Module("test_multiprocessing_fork", ("WithProcesses*",))),
    (Module("test_multiprocessing_spawn.test_processes"), Module("test_multiprocessing_spawn", ("WithProcesses*",))),
    (Module("test_concurrent_futures.test_deadlock"), Module("test_concurrent_futures", ("*Deadlock*",))),
    (Module("test_concurrent_futures.test_process_pool"), Module("test_concurrent_futures", ("ProcessPool*Test",))),
    (Module("test_concurrent_futures.test_wait"), Module("test_concurrent_futures", ("*WaitTest*", "*WaitTests*"))),
    (Module("test_concurrent_futures.test_shutdown"), Module("test_concurrent_futures", ("*Shutdown*",))),
    (Module("test_concurrent_futures.test_as_completed"), Module("test_concurrent_futures", ("*AsCompleted*",))),
    (Module("test_concurrent_futures.test_future"), Module("test_concurrent_futures", ("FutureTests",))),
    (Module("test_asyncio"),),
)

EXPLAINED = {
    "test.test_faulthandler.FaultHandlerTests.test_dump_ext_modules": (
        "since 3.15 it expects that the report of a crash names no extension module; "
        "the scheduler's is loaded, so that it is rightly named"
    ),
}
"""Tests that have to fail with the scheduler, each with the reason."""


def exists(name: str) -> bool:
    """Return whether this interpreter ships a test module."""
    try:
        return find_spec(f"test.{name}") is not None
    except ModuleNotFoundError:
        return False


def choose(choices: tuple[Choice, ...], is_there: Callable[[str], bool] = exists) -> tuple[list[Module], list[str]]:
    """Return the modules to run, and the names of those that this interpreter does not ship."""
    present: list[Module] = []
    absent: list[str] = []
    for choice in choices:
        found = next((module for module in choice if is_there(module.name)), None)
        if found is None:
            absent.append(choice[0].name)
        else:
            present.append(found)
    return present, absent


def named(names: Sequence[str], is_there: Callable[[str], bool] = exists) -> tuple[list[Module], list[str]]:
    """Return what is in the lists under these names, in any version, and those not shipped."""
    present: list[Module] = []
    absent: list[str] = []
    for name in names:
        known = tuple(choice for choice in FULL if any(module.name == name for module in choice))
        found, missing = choose(known or ((Module(name),),), is_there)
        present += found
        absent += missing
    return present, absent
