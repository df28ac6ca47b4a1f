"""Parker for green threads of eventlet.

An eventlet hub accepts no calls from other threads. So each hub gets a pipe that a green thread of unsnarl reads; a
waking thread writes a byte. A forked child needs a new pipe: bytes in the parent's pipe are read by the parent.

Invariant: a green thread is switched to only from its own hub; a pipe is read by one hub of one process.
"""

from __future__ import annotations

import os
from collections import deque
from importlib import import_module
from typing import Any

# Without types: its values are Any.
eventlet: Any = import_module("eventlet")
hubs: Any = import_module("eventlet.hubs")
getcurrent: Any = import_module("greenlet").getcurrent
threading: Any = import_module("eventlet.patcher").original("threading")

_thread_local = threading.local()


def parker() -> EventletParker | None:
    """Return a parker for the current green thread; None in a thread without a hub."""
    hub = getattr(hubs._threadlocal, "hub", None)
    if hub is None or getcurrent() is hub.greenlet:
        return None
    return EventletParker(hub)


class _Pipe:
    """Wake-ups for one hub from other threads.

    It stays open after a fork or `use_hub()` has given the thread another pipe: earlier parkers may still write to it.
    """

    def __init__(self, hub: Any) -> None:
        self.hub = hub
        self.process = os.getpid()
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.woken: deque[Any] = deque()
        self.thread = threading.get_ident()
        eventlet.spawn_n(self._serve)

    def _serve(self) -> None:
        while True:
            hubs.trampoline(self.reader, read=True)
            try:
                os.read(self.reader, 4096)
            except BlockingIOError:
                continue
            while self.woken:
                # Scheduled: a switch from here would suspend this green thread for good.
                self.hub.schedule_call_global(0, self.woken.popleft()._resume)

    def post(self, parker: EventletParker) -> None:
        self.woken.append(parker)
        try:
            os.write(self.writer, b"\0")
        except BlockingIOError:
            pass  # the pipe is full of wake-ups already


def _pipe_of(hub: Any) -> _Pipe:
    """Return this thread's pipe for its hub, in this process."""
    pipe: _Pipe | None = getattr(_thread_local, "pipe", None)
    if pipe is None or pipe.hub is not hub or pipe.process != os.getpid():
        pipe = _thread_local.pipe = _Pipe(hub)
    return pipe


class EventletParker:
    """Suspends one green thread of eventlet."""

    __slots__ = ("_deadline", "_greenlet", "_hub", "_is_over", "_is_parked", "_is_unparked", "_pipe")

    def __init__(self, hub: Any) -> None:
        self._hub = hub
        self._greenlet = getcurrent()
        self._is_parked = False
        self._is_unparked = False
        self._deadline: float | None = None
        self._is_over = False
        self._pipe = _pipe_of(hub)

    def park(self, timeout: float | None) -> bool:
        """Suspend until unparked or timed out; return whether it timed out."""
        if timeout is not None and self._deadline is None:
            self._deadline = self._hub.clock() + timeout
        if self._is_unparked:
            self._is_unparked = False
        elif not self._is_over:
            self._suspend()
        return self._is_over

    def _suspend(self) -> None:
        timer = None
        if self._deadline is not None:
            left = max(0.0, self._deadline - self._hub.clock())
            timer = self._hub.schedule_call_global(left, self._expire)
        self._is_parked = True
        try:
            self._hub.switch()
        finally:
            self._is_parked = False
            if timer is not None:
                timer.cancel()

    def unpark(self) -> None:
        """End the current suspension, or else the next; from any thread."""
        # A call in the hub's own greenlet is made by a signal handler: the hub's sleep continues afterwards.
        if threading.get_ident() == self._pipe.thread and getcurrent() is not self._hub.greenlet:
            self._hub.schedule_call_global(0, self._resume)
        else:
            self._pipe.post(self)

    def _expire(self) -> None:
        self._is_over = True
        self._resume()

    def _resume(self) -> None:
        if self._is_parked:
            self._is_parked = False
            self._greenlet.switch()
        else:
            self._is_unparked = True
