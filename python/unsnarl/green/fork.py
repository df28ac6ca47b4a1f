"""Forked children with one thread: the one that forked.

A fork copies every greenlet, and all of them would continue in the child: two processes would answer the same
connection and write the same line. The event loop has to stay, because sockets that the child inherits belong to it.
So everything that could switch to another greenlet is removed from the loop: watchers of descriptors and timers,
pending callbacks, and waiters of locks and queues.

A child of ``subprocess`` executes a program or ends, and never switches to a greenlet. It skips the walk over the
heap, which would touch every object of a large program, unless a ``preexec_fn`` runs the program's code in the child.

Invariants: the parent's greenlets are kept, not collected. Collecting a greenlet raises in it, and its ``finally``
would run in the wrong process. No other object on the heap is asked for an attribute: even ``isinstance`` runs code of
a lazy object, and raises for a dead weak proxy.
"""

from __future__ import annotations

import functools
import gc
import os
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

_greenlet: Any = import_module("greenlet").greenlet
_linkable: Any = import_module("gevent._abstract_linkable").AbstractLinkable
_waiter: Any = import_module("gevent._waiter").Waiter
_hub: Any = import_module("gevent._hub_local")

_type_of: Callable[[Any], type[Any]] = type
_left_behind: list[Any] = []
"""The greenlets of the parent."""

_WAITS = ("io", "timer", "idle", "callback")
"""Kinds of watchers on which a thread waits; the others belong to the event loop itself."""

_is_for_subprocess = False
"""Whether ``subprocess`` makes the fork in progress."""


def install() -> None:
    """Make forked children start with the forking thread alone."""
    os.register_at_fork(after_in_child=_begin)
    subprocess: Any = import_module("gevent.subprocess")
    subprocess.fork = _forking_for_subprocess(subprocess.fork)
    subprocess.Popen._execute_child = _leaving_before_the_program(subprocess.Popen._execute_child)


def _forking_for_subprocess(fork: Callable[[], int]) -> Callable[[], int]:
    """Return a fork that marks its child as one that executes a program."""

    def fork_for_subprocess() -> int:
        global _is_for_subprocess
        _is_for_subprocess = True
        try:
            return fork()
        finally:
            _is_for_subprocess = False

    return fork_for_subprocess


def _leaving_before_the_program(execute_child: Any) -> Any:
    """Return a method of ``Popen`` that stops the parent's threads in the child if there is a ``preexec_fn``."""

    @functools.wraps(execute_child)
    def execute(process: Any, args: Any, executable: Any, preexec_fn: Any, *rest: Any) -> None:
        in_child = None if preexec_fn is None else functools.partial(_leave_and_call, preexec_fn)
        execute_child(process, args, executable, in_child, *rest)

    return execute


def _leave_and_call(preexec_fn: Callable[[], object]) -> None:
    from unsnarl.green import signals

    signals.is_executing = False
    leave_behind()
    preexec_fn()


def _begin() -> None:
    from unsnarl.green import signal_waits, signals

    signals.note_main()
    signal_waits.forget_waits()
    if _is_for_subprocess:
        signals.is_executing = True
    else:
        leave_behind()


def leave_behind() -> None:
    """Stop the parent's other threads in this child."""
    # The interpreter has reduced them to the current thread, under its native and its green number.
    active: dict[int, threading.Thread] = vars(threading)["_active"]
    active.clear()
    active[threading.get_ident()] = threading.main_thread()
    native = sys.modules.get("unsnarl._native")
    if native is not None:
        native.leave_greenlets_behind()
    hub = _hub.get_hub_if_exists()
    if hub is not None:
        _stop_all(hub)


def _stop_all(hub: Any) -> None:
    """Stop the watchers of the parent's threads, and empty the wait queues of locks."""
    module: Any = import_module(type(hub.loop).__module__)
    waits = tuple(getattr(module, name) for name in _WAITS if hasattr(module, name))
    for found in gc.get_objects():
        kind = _type_of(found)
        if issubclass(kind, _greenlet):
            _left_behind.append(found)
        elif issubclass(kind, waits):
            found.stop()
        elif issubclass(kind, _waiter):
            found.clear()
        elif issubclass(kind, _linkable) and found.linkcount():
            # Its list of waiters cannot be reached by a name in Python, only through the garbage collector.
            for part in gc.get_referents(found):
                if type(part) is list:
                    part.clear()
