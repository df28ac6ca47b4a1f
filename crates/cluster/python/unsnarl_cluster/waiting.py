"""How a thread and a task wait for the native thread: without polling, and without a thread of Python's.

A thread sleeps on a futex without the GIL, and signals interrupt it. A task has a number rung at its event loop's
doorbell, a descriptor that the loop watches as long as a task waits.

Invariant: an operation whose caller leaves is abandoned, and a hold that it has brought by then is given back.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from unsnarl.sync import backends
from unsnarl.sync.backends import running
from unsnarl_cluster import _native
from unsnarl_cluster._native import Client, Operation
from unsnarl_cluster.errors import reraise


def finish(operation: Operation, client: Client) -> Any:
    """Wait in this thread until an operation is done, and return what it has brought.

    Raises:
        ClusterError: or whatever else the operation has ended with.
    """
    try:
        operation.wait()
    except BaseException:
        abandon(operation, client)
        raise
    return result(operation)


async def async_finish(operation: Operation, client: Client) -> Any:
    """Wait in this task until an operation is done, and return what it has brought."""
    await async_finish_quietly(operation, client)
    return result(operation)


async def async_finish_quietly(operation: Operation, client: Client) -> None:
    """Wait in this task until an operation is done, and leave its outcome to the caller."""
    try:
        if not operation.is_done:
            await _done(operation)
    except BaseException:
        abandon(operation, client)
        raise


def abandon(operation: Operation, client: Client) -> None:
    """Give an operation up, and a hold that it has brought back."""
    hold = operation.abandon()
    if hold is not None and hold.release() is None:
        client.release(hold)


def result(operation: Operation) -> Any:
    """Return what a finished operation has brought, or raise its failure."""
    try:
        return operation.result()
    except _native.NativeError as error:
        reraise(error)


async def _done(operation: Operation) -> None:
    library = running.backend()
    if library is None:
        await _done_in_asyncio(operation)
    elif library.__name__.endswith(".trio"):
        await _done_in_trio(operation)
    else:
        raise RuntimeError("unsnarl.cluster waits in tasks of asyncio and trio, and in threads")


# ---------------------------------------------------------------- asyncio


class _AsyncioBell:
    """The doorbell of one loop; the loop watches it as long as a task of the loop waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._bell = _native.Doorbell()
        self._waiting: dict[int, Callable[[], None]] = {}
        self._last = 0

    def subscribe(self, operation: Operation, wake: Callable[[], None]) -> int | None:
        """Have `wake` called in the loop when the operation is done; None if it is done already."""
        self._last += 1
        if not operation.subscribe(self._bell, self._last):
            return None
        if not self._waiting:
            self._loop.add_reader(self._bell.fileno(), self._answer)
        self._waiting[self._last] = wake
        return self._last

    def unsubscribe(self, number: int) -> None:
        """Forget one; a ring for it is ignored."""
        self._waiting.pop(number, None)
        if not self._waiting:
            self._loop.remove_reader(self._bell.fileno())

    def _answer(self) -> None:
        for number in self._bell.drain():
            wake = self._waiting.get(number)
            if wake is not None:
                wake()


_asyncio_bells: WeakKeyDictionary[asyncio.AbstractEventLoop, _AsyncioBell] = WeakKeyDictionary()


async def _done_in_asyncio(operation: Operation) -> None:
    loop = asyncio.get_running_loop()
    bell = _asyncio_bells.get(loop)
    if bell is None:
        bell = _asyncio_bells[loop] = _AsyncioBell(loop)
    future: asyncio.Future[None] = loop.create_future()
    number = bell.subscribe(operation, lambda: None if future.done() else future.set_result(None))
    if number is None:
        return
    try:
        await future
    finally:
        bell.unsubscribe(number)


# ---------------------------------------------------------------- trio


class _TrioBell:
    """The doorbell of one run of trio, answered by a system task of the run."""

    def __init__(self, trio: Any) -> None:
        self._trio = trio
        self._bell = _native.Doorbell()
        self._waiting: dict[int, Any] = {}
        self._last = 0
        trio.lowlevel.spawn_system_task(self._answer)

    def subscribe(self, operation: Operation) -> tuple[int, Any] | None:
        """Return a parker that is unparked when the operation is done; None if it is done already."""
        self._last += 1
        if not operation.subscribe(self._bell, self._last):
            return None
        parker = self._waiting[self._last] = backends.task_parker()
        return self._last, parker

    def unsubscribe(self, number: int) -> None:
        """Forget one; a ring for it is ignored."""
        self._waiting.pop(number, None)

    async def _answer(self) -> None:
        while True:
            await self._trio.lowlevel.wait_readable(self._bell.fileno())
            for number in self._bell.drain():
                parker = self._waiting.get(number)
                if parker is not None:
                    parker.unpark()


_trio_bells: WeakKeyDictionary[Any, _TrioBell] = WeakKeyDictionary()


async def _done_in_trio(operation: Operation) -> None:
    trio = sys.modules["trio"]
    token = trio.lowlevel.current_trio_token()
    bell = _trio_bells.get(token)
    if bell is None:
        bell = _trio_bells[token] = _TrioBell(trio)
    subscription = bell.subscribe(operation)
    if subscription is None:
        return
    number, parker = subscription
    try:
        while not operation.is_done:
            await parker.park(None)
    finally:
        bell.unsubscribe(number)


# ---------------------------------------------------------------- identity


def caller() -> object:
    """Return what stands for the running task, or for this thread outside of one."""
    task = running.asyncio_task() if running.backend() is None else backends.current_task()
    return threading.get_ident() if task is None else id(task)
