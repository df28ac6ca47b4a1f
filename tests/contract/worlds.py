"""The worlds in which a primitive is used: one small adapter per library.

A world runs several parties at the same time, lets them pause, and can cancel one. Asynchronous worlds run
coroutines; the others run plain functions.

Invariant: no adapter waits for a time; `wait_until_idle` lets every other party run until it waits.
"""

from __future__ import annotations

import threading
from typing import Any


class AsyncioWorld:
    """Tasks of asyncio."""

    is_async = True
    starts_in_order = True

    def run(self, main: Any) -> Any:
        import asyncio

        return asyncio.run(main(self))

    async def wait_until_idle(self) -> None:
        import asyncio

        for _ in range(5):
            await asyncio.sleep(0)

    async def together(self, *functions: Any) -> None:
        import asyncio

        await asyncio.gather(*(function() for function in functions))

    async def cancelled(self, function: Any) -> None:
        """Start it, let it wait, cancel it, and see it end."""
        import asyncio

        task = asyncio.ensure_future(function())
        await self.wait_until_idle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


class UvloopWorld(AsyncioWorld):
    """Tasks of asyncio on uvloop."""

    def run(self, main: Any) -> Any:
        import asyncio

        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main(self))


class TrioWorld:
    """Tasks of trio."""

    is_async = True
    starts_in_order = False

    def run(self, main: Any) -> Any:
        import trio

        return trio.run(main, self)

    async def wait_until_idle(self) -> None:
        import trio.testing

        await trio.testing.wait_all_tasks_blocked()

    async def together(self, *functions: Any) -> None:
        import trio

        async with trio.open_nursery() as nursery:
            for function in functions:
                nursery.start_soon(function)

    async def cancelled(self, function: Any) -> None:
        import trio

        async with trio.open_nursery() as nursery:
            nursery.start_soon(function)
            await self.wait_until_idle()
            nursery.cancel_scope.cancel()


class AnyioWorld:
    """Tasks of anyio, on the back end that asyncio gives it."""

    is_async = True
    starts_in_order = True
    backend = "asyncio"

    def run(self, main: Any) -> Any:
        import anyio

        return anyio.run(main, self, backend=self.backend)

    async def wait_until_idle(self) -> None:
        import anyio

        for _ in range(5):
            await anyio.lowlevel.checkpoint()

    async def together(self, *functions: Any) -> None:
        import anyio

        async with anyio.create_task_group() as group:
            for function in functions:
                group.start_soon(function)

    async def cancelled(self, function: Any) -> None:
        import anyio

        async with anyio.create_task_group() as group:
            group.start_soon(function)
            await self.wait_until_idle()
            group.cancel_scope.cancel()


class AnyioTrioWorld(AnyioWorld):
    """Tasks of anyio on trio."""

    starts_in_order = False
    backend = "trio"

    async def wait_until_idle(self) -> None:
        import trio.testing

        await trio.testing.wait_all_tasks_blocked()


class CurioWorld:
    """Tasks of curio."""

    is_async = True
    starts_in_order = True

    def run(self, main: Any) -> Any:
        import curio

        return curio.run(main, self)

    async def wait_until_idle(self) -> None:
        import curio

        for _ in range(5):
            await curio.sleep(0)

    async def together(self, *functions: Any) -> None:
        import curio

        async with curio.TaskGroup() as group:
            for function in functions:
                await group.spawn(function)

    async def cancelled(self, function: Any) -> None:
        import curio

        task = await curio.spawn(function)
        await self.wait_until_idle()
        await task.cancel()


class ThreadWorld:
    """Threads."""

    is_async = False

    def run(self, main: Any) -> Any:
        return main(self)

    def together(self, *functions: Any) -> None:
        errors: list[BaseException] = []

        def guarded(function: Any) -> None:
            try:
                function()
            except BaseException as error:  # noqa: BLE001 - raised again below, in the world's own thread
                errors.append(error)

        threads = [threading.Thread(target=guarded, args=(function,)) for function in functions]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a thread hangs"
        if errors:
            raise errors[0]


class GeventWorld:
    """Greenlets of gevent."""

    is_async = False

    def run(self, main: Any) -> Any:
        import gevent

        return gevent.spawn(main, self).get(timeout=60)

    def together(self, *functions: Any) -> None:
        import gevent

        gevent.joinall([gevent.spawn(function) for function in functions], timeout=60, raise_error=True)


class EventletWorld:
    """Green threads of eventlet."""

    is_async = False

    def run(self, main: Any) -> Any:
        import eventlet

        return eventlet.spawn(main, self).wait()

    def together(self, *functions: Any) -> None:
        import eventlet

        with eventlet.Timeout(60):
            for green in [eventlet.spawn(function) for function in functions]:
                green.wait()


WORLDS = {
    "anyio": AnyioWorld,
    "anyio on trio": AnyioTrioWorld,
    "asyncio": AsyncioWorld,
    "curio": CurioWorld,
    "eventlet": EventletWorld,
    "gevent": GeventWorld,
    "thread": ThreadWorld,
    "trio": TrioWorld,
    "uvloop": UvloopWorld,
}

LIBRARIES = {"anyio on trio": ("anyio", "trio"), "thread": ()}
"""The modules that a world needs, where that is not the library of its name."""
