"""Signal handlers whose exceptions are raised in the main thread, as without greenlets.

The interpreter runs a handler in whichever greenlet is current, or in gevent's hub while all greenlets wait. An
exception of the handler would end an unrelated thread, or be printed by the hub and lost. Here it is raised in the
main greenlet, even while that waits. In the hub the handler runs in a new greenlet, so that it may wait as well.

gevent would consider a program that only waits for a signal deadlocked, and raise ``LoopExit``; a watcher that is
always active prevents this. ``signal.pause`` waits in the hub until a handler has run, and ``signal.pthread_kill``
accepts the idents of green threads.

Invariant: ``signal.getsignal`` and ``signal.signal`` return the handlers that the program set, never those of
unsnarl; only the main thread and handlers can set one.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from importlib import import_module
from types import FrameType
from typing import Any, cast

# gevent is not installed where types are checked: its values are Any.
_get_hub: Any = import_module("gevent").get_hub
_spawn_raw: Any = import_module("gevent").spawn_raw
_getcurrent: Any = import_module("greenlet").getcurrent
_event: Any = import_module("gevent.event").Event
_native_ident: Any = import_module("gevent.monkey").get_original("_thread", "get_ident")

Handler = Callable[[int, FrameType | None], Any]

_main: Any = None
_watch: Any = None
_handling: set[Any] = set()
"""The greenlets that run a handler; a handler counts as part of the main thread."""
_set: Any = None
_get: Any = None
_kill: Any = None
_pausing: set[Any] = set()
"""One event for each thread in ``signal.pause``."""

is_executing = False
"""Whether this process is a child of ``subprocess`` before it executes its program: no handler runs in it."""


class _Delivery:
    """Calls a handler of the program so that its exception is raised in the main thread."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        current = _getcurrent()
        if is_executing:
            # As in a child made by vfork (CPython 3.13, _posixsubprocess.c, reset_signal_handlers).
            _set(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        elif current is _main:
            try:
                self.handler(number, frame)
            finally:
                _end_pauses()
        elif current is _get_hub():
            _spawn_raw(self._call_and_report, number, frame)
        else:
            self._call_here(number, frame)

    def _call_here(self, number: int, frame: FrameType | None) -> None:
        """Call the handler in the current thread; if the handler raises, that thread continues later."""
        try:
            self._call(number, frame)
        except BaseException:  # noqa: BLE001 -- any exception is raised in the main thread
            _end_pauses()
            _get_hub().loop.run_callback(_getcurrent().switch)
            _main.throw(*sys.exc_info())
        else:
            _end_pauses()

    def _call_and_report(self, number: int, frame: FrameType | None) -> None:
        """Call the handler in a new greenlet, which ends afterwards."""
        try:
            self._call(number, frame)
        except BaseException:  # noqa: BLE001 -- any exception is raised in the main thread
            _get_hub().loop.run_callback(_main.throw, *sys.exc_info())
        _end_pauses()  # last, so that the exception is raised in a pause of the main thread

    def _call(self, number: int, frame: FrameType | None) -> None:
        """Call the handler as a part of the main thread."""
        current = _getcurrent()
        is_outermost = current not in _handling
        _handling.add(current)
        try:
            self.handler(number, frame)
        finally:
            if is_outermost:
                _handling.discard(current)


class _Nothing(_Delivery):
    """Replaces a handler while a command of ``os.system`` runs; executing a program resets it to the default."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Do nothing."""


_aside: dict[int, Any] = {}
"""The handlers that a ``_Nothing`` replaces, as ``signal`` has them."""


def set_aside(numbers: Iterable[int]) -> None:
    """Give signals that are not ignored a handler without effect, until ``put_back``."""
    for number in numbers:
        handler = _get(number)
        if handler is not None and handler != signal.SIG_IGN:
            _aside[number] = _set(number, _Nothing(_as_given(handler)))


def put_back() -> None:
    """Restore the replaced handlers."""
    while _aside:
        _set(*_aside.popitem())


def install() -> None:
    """Deliver signals that have a handler now, or get one later."""
    global _set, _get, _kill, _watch
    _set, _get, _kill = signal.signal, signal.getsignal, signal.pthread_kill
    note_main()
    # Never triggered: with an active watcher the loop may wait for signals alone.
    _watch = _get_hub().loop.async_()
    _watch.start(note_nothing)
    signal.signal, signal.getsignal = set_handler, get_handler
    signal.pause, signal.pthread_kill = pause, pthread_kill
    for number in signal.valid_signals():
        handler = _get(number)
        if callable(handler) and not isinstance(handler, signal.Handlers):
            set_handler(number, handler)


def note_nothing() -> None:
    """Do nothing."""


def note_main() -> None:
    """Record the current greenlet as the main thread: at the start, and in a forked child."""
    global _main
    _main = _getcurrent()


def set_handler(signalnum: int, handler: Any) -> Any:
    """Do what ``signal.signal`` does.

    Raises:
        ValueError: the caller is not the main thread.
    """
    current = _getcurrent()
    if current is not _main and current not in _handling:
        raise ValueError("signal only works in main thread of the main interpreter")
    is_ours = callable(handler) and not isinstance(handler, (signal.Handlers, int))
    wanted = _Delivery(cast("Handler", handler)) if is_ours else handler
    if signalnum in _aside:  # takes effect when the command has ended
        _aside[signalnum], before = wanted, _aside[signalnum]
        return _as_given(before)
    return _as_given(_set(signalnum, wanted))


def get_handler(signalnum: int) -> Any:
    """Do what ``signal.getsignal`` does."""
    return _as_given(_aside[signalnum] if signalnum in _aside else _get(signalnum))


def _as_given(handler: Any) -> Any:
    return handler.handler if isinstance(handler, _Delivery) else handler


def pause() -> None:
    """Do what ``signal.pause`` does while the other threads run."""
    woken = _event()
    _pausing.add(woken)
    try:
        woken.wait()
    finally:
        _pausing.discard(woken)


def _end_pauses() -> None:
    for woken in tuple(_pausing):
        woken.set()


def pthread_kill(thread_id: int, signalnum: int) -> None:
    """Do what ``signal.pthread_kill`` does; every green thread belongs to this native thread.

    Raises:
        ProcessLookupError: no thread has this ident.
    """
    if thread_id not in vars(sys)["_current_frames"]():  # keyed by native idents
        if thread_id not in vars(threading)["_active"] and thread_id != threading.get_ident():
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        thread_id = _native_ident()
    _kill(thread_id, signalnum)
