"""A forked child has one thread, the one that forked.

gevent copies every greenlet into the child, where they would all go on: two
processes would answer the same connection and write the same line. The event loop
has to stay, since sockets that the child inherits belong to it. So whatever could
switch to another greenlet is taken out of it: what waits for a descriptor or a
time, what is about to run, and who waits for a lock or a queue.

Invariant: those greenlets are kept, not collected: collecting a greenlet raises in
it, and its ``finally`` would run in a process that it does not belong to.
"""

from __future__ import annotations

import gc
import os
import threading
from importlib import import_module
from typing import Any

_greenlet: Any = import_module("greenlet").greenlet
_linkable: Any = import_module("gevent._abstract_linkable").AbstractLinkable
_waiter: Any = import_module("gevent._waiter").Waiter
_hub: Any = import_module("gevent._hub_local")

_left_behind: list[Any] = []
"""The greenlets of the parent."""

_WAITS = ("io", "timer", "idle", "callback")
"""Kinds of watchers that stand for a thread; the others are the event loop's own."""


def install() -> None:
    """Have forked children start with the forking thread alone."""
    os.register_at_fork(after_in_child=leave_behind)


def leave_behind() -> None:
    """Forget the parent's threads."""
    from unsnarl.green import signals

    signals.note_main()
    # The interpreter has reduced them to the current thread, under its native and its green number.
    active: dict[int, threading.Thread] = vars(threading)["_active"]
    active.clear()
    active[threading.get_ident()] = threading.main_thread()
    hub = _hub.get_hub_if_exists()
    if hub is not None:
        _stop_all(hub)


def _stop_all(hub: Any) -> None:
    """Stop what waits, and empty the queues of locks."""
    module: Any = import_module(type(hub.loop).__module__)
    waits = tuple(getattr(module, name) for name in _WAITS if hasattr(module, name))
    for found in gc.get_objects():
        if isinstance(found, _greenlet):
            _left_behind.append(found)
        elif isinstance(found, waits):
            found.stop()
        elif isinstance(found, _waiter):
            found.clear()
        elif isinstance(found, _linkable) and found.linkcount():
            # Its list of waiters has no name in Python, but its collector knows it.
            for part in gc.get_referents(found):
                if type(part) is list:
                    part.clear()
