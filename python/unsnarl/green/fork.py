"""A forked child has one thread, the one that forked.

gevent copies every greenlet into the child, where they would all go on: two
processes would answer the same connection and write the same line. The event loop
has to stay, since sockets that the child inherits belong to it. So whatever could
switch to another greenlet is taken out of it: what waits for a descriptor or a
time, what is about to run, and who waits for a lock or a queue.

A child that ``subprocess`` makes executes a program or ends, and no greenlet is switched to in it: it is
spared the walk over the heap, which would touch every object of a large program, unless ``preexec_fn``
lets the program run in it.

Invariant: those greenlets are kept, not collected: collecting a greenlet raises in
it, and its ``finally`` would run in a process that it does not belong to. What else is on the heap
is asked for nothing: even ``isinstance`` runs code of a lazy object, and raises for a dead weak proxy.
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
"""Kinds of watchers that stand for a thread; the others are the event loop's own."""


_is_for_subprocess = False
"""Whether the fork that happens just now is one of ``subprocess``."""


def install() -> None:
    """Have forked children start with the forking thread alone."""
    os.register_at_fork(after_in_child=_begin)
    subprocess: Any = import_module("gevent.subprocess")
    subprocess.fork = _forking_for_subprocess(subprocess.fork)
    subprocess.Popen._execute_child = _leaving_before_the_program(subprocess.Popen._execute_child)


def _forking_for_subprocess(fork: Callable[[], int]) -> Callable[[], int]:
    """Return a fork whose child is known for one that executes a program."""

    def fork_for_subprocess() -> int:
        global _is_for_subprocess
        _is_for_subprocess = True
        try:
            return fork()
        finally:
            _is_for_subprocess = False

    return fork_for_subprocess


def _leaving_before_the_program(execute_child: Any) -> Any:
    """Return a method of ``Popen`` that leaves the threads behind if the program has something to run in the child."""

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
    """Forget the parent's threads."""
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
    """Stop what waits, and empty the queues of locks."""
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
            # Its list of waiters has no name in Python, but its collector knows it.
            for part in gc.get_referents(found):
                if type(part) is list:
                    part.clear()
