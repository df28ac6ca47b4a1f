"""Signal handlers whose exceptions reach the main thread, as they do without greenlets.

A handler runs wherever the interpreter happens to be: in any greenlet, or in
gevent's hub while all of them wait: gevent itself would take a wait for a signal
alone for one that never ends, and raise ``LoopExit``. What a handler raises would end a thread that has
nothing to do with it, or be printed by the hub and lost. Here it is raised in the
main greenlet, wherever that waits; in the hub the handler runs in a greenlet of
its own, so that it may wait, too. ``signal.pause`` waits in the hub until a handler has run, and
``signal.pthread_kill`` knows the numbers that green threads have.

Invariant: ``signal.getsignal`` and ``signal.signal`` answer with the handlers that
the program set, never with ours, and only the main thread and handlers set them.
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

# Not installed where the types are checked: what comes out of it is Any.
_get_hub: Any = import_module("gevent").get_hub
_spawn_raw: Any = import_module("gevent").spawn_raw
_getcurrent: Any = import_module("greenlet").getcurrent
_event: Any = import_module("gevent.event").Event
_native_ident: Any = import_module("gevent.monkey").get_original("_thread", "get_ident")

Handler = Callable[[int, FrameType | None], Any]

_main: Any = None
_watch: Any = None
_handling: set[Any] = set()
"""The greenlets that are running a handler, which is the main thread's business wherever it runs."""
_set: Any = None
_get: Any = None
_kill: Any = None
_pausing: set[Any] = set()
"""An event for each thread in ``signal.pause``."""

is_executing = False
"""Whether this is a child of ``subprocess`` that is about to execute its program: no handler runs in it."""


class _Delivery:
    """A handler of the program, called where its exception does what it should."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        current = _getcurrent()
        if is_executing:
            # As where it is made by vfork (CPython 3.13, _posixsubprocess.c, reset_signal_handlers).
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
        """Call the handler in the thread that happens to run, which goes on later whatever it raises."""
        try:
            self._call(number, frame)
        except BaseException:  # noqa: BLE001 -- it goes to the main thread, whatever it is
            _end_pauses()
            _get_hub().loop.run_callback(_getcurrent().switch)
            _main.throw(*sys.exc_info())
        else:
            _end_pauses()

    def _call_and_report(self, number: int, frame: FrameType | None) -> None:
        """Call the handler in a greenlet of its own, which has nothing to go on with."""
        try:
            self._call(number, frame)
        except BaseException:  # noqa: BLE001 -- it goes to the main thread, whatever it is
            _get_hub().loop.run_callback(_main.throw, *sys.exc_info())
        _end_pauses()  # after that: what is raised in a pause of the main thread is raised there

    def _call(self, number: int, frame: FrameType | None) -> None:
        """Call the handler as what it is, a part of the main thread."""
        current = _getcurrent()
        is_outermost = current not in _handling
        _handling.add(current)
        try:
            self.handler(number, frame)
        finally:
            if is_outermost:
                _handling.discard(current)


class _Nothing(_Delivery):
    """What stands in for a handler while a command of ``os.system`` runs; executing a program resets it."""

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Do nothing."""


_aside: dict[int, Any] = {}
"""The handlers for which there is a _Nothing, as the system knows them."""


def set_aside(numbers: Iterable[int]) -> None:
    """Have signals that are not ignored do nothing, until ``put_back``."""
    for number in numbers:
        handler = _get(number)
        if handler is not None and handler != signal.SIG_IGN:
            _aside[number] = _set(number, _Nothing(_as_given(handler)))


def put_back() -> None:
    """Let signals do again what they did."""
    while _aside:
        _set(*_aside.popitem())


def install() -> None:
    """Deliver the signals that have handlers, and those that will get one."""
    global _set, _get, _kill, _watch
    _set, _get, _kill = signal.signal, signal.getsignal, signal.pthread_kill
    note_main()
    # Nobody calls it: it is there so that the loop always has something to wait for, a signal for instance.
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
    """Take the current greenlet for the main thread: at the start, and in a forked child."""
    global _main
    _main = _getcurrent()


def set_handler(signalnum: int, handler: Any) -> Any:
    """Do what ``signal.signal`` does.

    Raises:
        ValueError: in another thread than the main one, as ever.
    """
    current = _getcurrent()
    if current is not _main and current not in _handling:
        raise ValueError("signal only works in main thread of the main interpreter")
    is_ours = callable(handler) and not isinstance(handler, (signal.Handlers, int))
    wanted = _Delivery(cast("Handler", handler)) if is_ours else handler
    if signalnum in _aside:  # it is in force when the command has ended
        _aside[signalnum], before = wanted, _aside[signalnum]
        return _as_given(before)
    return _as_given(_set(signalnum, wanted))


def get_handler(signalnum: int) -> Any:
    """Do what ``signal.getsignal`` does."""
    return _as_given(_aside[signalnum] if signalnum in _aside else _get(signalnum))


def _as_given(handler: Any) -> Any:
    return handler.handler if isinstance(handler, _Delivery) else handler


def pause() -> None:
    """Do what ``signal.pause`` does, letting the other threads run meanwhile."""
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
    """Do what ``signal.pthread_kill`` does: whatever green thread is meant, it is this native one.

    Raises:
        ProcessLookupError: there is no such thread.
    """
    if thread_id not in vars(sys)["_current_frames"]():  # by native numbers
        if thread_id not in vars(threading)["_active"] and thread_id != threading.get_ident():
            raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        thread_id = _native_ident()
    _kill(thread_id, signalnum)
