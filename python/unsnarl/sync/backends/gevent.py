"""Parker for greenlets of gevent.

A thread that has a hub never blocks: its current greenlet is parked in the hub.

Invariant: a greenlet is switched to only from its own hub; other threads trigger an async watcher of the hub, which is
safe from any thread.
"""

from __future__ import annotations

import math
import time
from importlib import import_module
from typing import Any

# gevent is not installed where types are checked: its values are Any.
get_hub_if_exists: Any = import_module("gevent._hub_local").get_hub_if_exists
getcurrent: Any = import_module("greenlet").getcurrent


def parker() -> GeventParker | None:
    """Return a parker for the current greenlet; None in a thread without a hub."""
    hub = get_hub_if_exists()
    if hub is None or getcurrent() is hub:
        return None
    return GeventParker(hub)


def _is_destroyed(hub: Any) -> bool:
    loop = hub.loop
    return loop is None or not loop.ptr


class GeventParker:
    """Suspends one greenlet of gevent."""

    __slots__ = ("_callback", "_deadline", "_greenlet", "_hub", "_is_parked", "_is_unparked", "_watcher")

    def __init__(self, hub: Any) -> None:
        self._hub = hub
        self._greenlet = getcurrent()
        self._watcher: Any = None
        self._callback: Any = None
        self._deadline = math.inf
        self._is_parked = False
        self._is_unparked = False

    def park(self, timeout: float | None) -> bool:
        """Suspend until unparked or timed out; return whether it timed out."""
        if timeout is not None and self._deadline == math.inf:
            self._deadline = time.monotonic() + timeout
        self._suspend()
        # The loop's time is that of its last iteration, so its timers may fire early.
        return timeout is not None and self._deadline <= time.monotonic()

    def _suspend(self) -> None:
        watcher = self._hub.loop.async_()
        timer = None
        watcher.start(self._resume)
        self._watcher = watcher
        try:
            if self._is_unparked:
                return
            if self._deadline != math.inf:
                timer = self._hub.loop.timer(max(0.0, self._deadline - time.monotonic()))
                timer.start(self._resume)
            self._is_parked = True
            self._hub.switch()
        finally:
            self._is_parked = self._is_unparked = False
            self._watcher = None
            watcher.stop()
            watcher.close()
            if timer is not None:
                timer.stop()
                timer.close()
            if self._callback is not None:
                self._callback.stop()
                self._callback = None

    def unpark(self) -> None:
        """End the current suspension, or else the next; from any thread."""
        self._is_unparked = True
        watcher = self._watcher
        if watcher is None:
            return
        if get_hub_if_exists() is not self._hub:
            if not _is_destroyed(self._hub):
                self._send(watcher)
        elif self._callback is None:
            # In the hub's own thread no system call is needed.
            self._callback = self._hub.loop.run_callback(self._resume)

    def _send(self, watcher: Any) -> None:
        try:
            watcher.send()
        except Exception:
            # Closed concurrently: the greenlet is awake and re-checks by itself, or its hub has ended.
            if self._watcher is watcher and not _is_destroyed(self._hub):
                raise

    def _resume(self) -> None:
        if self._is_parked:
            self._is_parked = False
            self._greenlet.switch()
