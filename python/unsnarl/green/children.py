"""``os.wait`` that finds a forked child even if gevent's loop has already reaped it.

Once a subprocess has been started, gevent's loop reaps every child that ends and keeps the status for ``os.waitpid``,
which gevent replaces. gevent does not replace ``os.wait``, which then finds no child (gevent/os.py,
``_watched_children``). The status of a subprocess stays in that table after ``Popen.wait`` has returned it, and is
removed here. ``os.wait3``, ``os.wait4`` and ``os.waitid`` return more than gevent keeps, and are not replaced.

Invariant: each status is returned once.
"""

from __future__ import annotations

import functools
import os
from importlib import import_module
from typing import Any, cast

_gevent_os: Any = import_module("gevent.os")
_get_hub: Any = import_module("gevent").get_hub
_sleep: Any = import_module("gevent").sleep

Ended = tuple[int, int, float]
"""A child that has ended: its process id, its status, and the time."""

_wait: Any = None


def install() -> None:
    """Replace ``os.wait``, where gevent has replaced ``os.waitpid``."""
    global _wait
    if not hasattr(_gevent_os, "_watched_children"):
        return
    _wait, os.wait = os.wait, wait
    popen: Any = import_module("gevent.subprocess").Popen
    for name in ("wait", "_internal_poll"):
        setattr(popen, name, _returned_once(getattr(popen, name)))


def _returned_once(method: Any) -> Any:
    """Return a method of ``Popen`` that also removes the returned status from gevent's table."""

    @functools.wraps(method)
    def waiting(process: Any, *arguments: Any, **named: Any) -> Any:
        status = method(process, *arguments, **named)
        if status is not None and "_is_returned" not in vars(process):
            process._is_returned = True  # by the next call the process id may belong to another child
            _gevent_os._watched_children.pop(process.pid, None)
        return status

    return waiting


def wait() -> tuple[int, int]:
    """Do what ``os.wait`` does, while the other threads run."""
    children: dict[int, Any] = _gevent_os._watched_children  # a watcher, or an ``Ended``
    while children:
        ended = [cast("Ended", known) for known in children.values() if isinstance(known, tuple)]
        if ended:
            pid, status, _ = min(ended, key=lambda known: known[2])
            del children[pid]
            return pid, status
        with _get_hub().loop.child(0, False) as any_child:
            _get_hub().wait(any_child)
            pid, status = any_child.rpid, any_child.rstatus
        if pid not in children:  # no forked child of the program; a subprocess, for instance
            return pid, status
        while not isinstance(children.get(pid, ()), tuple):  # the loop has not called its watcher yet
            _sleep(0)
    found: tuple[int, int] = _wait()
    return found
