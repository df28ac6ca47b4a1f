"""Signal handlers whose exceptions reach the main thread, as they do without greenlets.

A handler runs wherever the interpreter happens to be: in any greenlet, or in
gevent's hub while all of them wait: gevent itself would take a wait for a signal
alone for one that never ends, and raise ``LoopExit``. What a handler raises would end a thread that has
nothing to do with it, or be printed by the hub and lost. Here it is raised in the
main greenlet, wherever that waits; in the hub the handler runs in a greenlet of
its own, so that it may wait, too.

Invariant: ``signal.getsignal`` and ``signal.signal`` answer with the handlers that
the program set, never with ours, and only the main thread and handlers set them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, cast

# Not installed where the types are checked: what comes out of it is Any.
_get_hub: Any = import_module("gevent").get_hub
_spawn_raw: Any = import_module("gevent").spawn_raw
_getcurrent: Any = import_module("greenlet").getcurrent

Handler = Callable[[int, FrameType | None], Any]

_main: Any = None
_watch: Any = None
_handling: set[Any] = set()
"""The greenlets that are running a handler, which is the main thread's business wherever it runs."""
_set: Any = None
_get: Any = None


class _Delivery:
    """A handler of the program, called where its exception does what it should."""

    __slots__ = ("handler",)

    def __init__(self, handler: Handler) -> None:
        self.handler = handler

    def __call__(self, number: int, frame: FrameType | None) -> None:
        current = _getcurrent()
        if current is _main:
            self.handler(number, frame)
        elif current is _get_hub():
            _spawn_raw(self._call_and_report, number, frame)
        else:
            self._call_here(number, frame)

    def _call_here(self, number: int, frame: FrameType | None) -> None:
        """Call the handler in the thread that happens to run, which goes on later whatever it raises."""
        try:
            self._call(number, frame)
        except BaseException:  # noqa: BLE001 -- it goes to the main thread, whatever it is
            _get_hub().loop.run_callback(_getcurrent().switch)
            _main.throw(*sys.exc_info())

    def _call_and_report(self, number: int, frame: FrameType | None) -> None:
        """Call the handler in a greenlet of its own, which has nothing to go on with."""
        try:
            self._call(number, frame)
        except BaseException:  # noqa: BLE001 -- it goes to the main thread, whatever it is
            _get_hub().loop.run_callback(_main.throw, *sys.exc_info())

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


def install() -> None:
    """Deliver the signals that have handlers, and those that will get one."""
    global _set, _get, _watch
    _set, _get = signal.signal, signal.getsignal
    note_main()
    # Nobody calls it: it is there so that the loop always has something to wait for, a signal for instance.
    _watch = _get_hub().loop.async_()
    _watch.start(note_nothing)
    signal.signal, signal.getsignal = set_handler, get_handler
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
    return _as_given(_set(signalnum, _Delivery(cast("Handler", handler)) if is_ours else handler))


def get_handler(signalnum: int) -> Any:
    """Do what ``signal.getsignal`` does."""
    return _as_given(_get(signalnum))


def _as_given(handler: Any) -> Any:
    return handler.handler if isinstance(handler, _Delivery) else handler
