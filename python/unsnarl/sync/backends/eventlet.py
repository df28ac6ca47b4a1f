"""Parker for green threads of eventlet.

An eventlet hub accepts no calls from other threads. So each hub gets a pipe; a waking thread writes a byte. A forked
child needs a new pipe: bytes in the parent's pipe are read by the parent.

Invariants: a green thread is switched to only from its own hub; a pipe is read by one hub of one process; the hub
listens to its pipe only while a green thread of it is suspended here, so that an idle hub has no listener of unsnarl.

Things that don't work: a green thread that reads the pipe for good. It is a listener for ever, and programs that expect
their hub to be empty when their own sockets are closed (eventlet's own tests do) never find it so.
"""

from __future__ import annotations

import os
from collections import deque
from importlib import import_module
from typing import Any

# Without types: its values are Any.
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
        self._suspended = 0
        self._listener: Any = None

    def enter(self) -> None:
        """Listen, since one more green thread of the hub is about to be suspended."""
        if self._listener is None:
            self._listener = self.hub.add(self.hub.READ, self.reader, self._wake, _ignored, None)
        self._suspended += 1

    def leave(self) -> None:
        """End what one call of `enter()` began."""
        self._suspended -= 1
        if not self._suspended:
            listener, self._listener = self._listener, None
            self.hub.remove(listener)

    def _wake(self, _reader: int) -> None:
        """Resume the green threads that other threads have woken; the hub calls it in its own greenlet."""
        try:
            os.read(self.reader, 4096)
        except BlockingIOError:
            pass  # an earlier call has read the byte
        while self.woken:
            self.hub.schedule_call_global(0, self.woken.popleft()._resume)

    def post(self, parker: EventletParker) -> None:
        self.woken.append(parker)
        try:
            os.write(self.writer, b"\0")
        except BlockingIOError:
            pass  # the pipe is full of wake-ups already


def _ignored(_closed: object) -> None:
    """Take the exception with which a hub tells the owner of a descriptor that another owner has closed it."""


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
        self._pipe.enter()
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
            self._pipe.leave()

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
