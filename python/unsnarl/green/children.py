"""``os.wait`` that finds forked children, whoever has waited for them already.

Once a subprocess has been started, gevent's loop waits for every child that ends and
keeps its status for ``os.waitpid``, which gevent replaces. It leaves ``os.wait`` as it is,
which then finds nothing (gevent/os.py, ``_watched_children``). The status of a subprocess stays
in that table after ``Popen.wait`` has told it, and is taken out here. ``os.wait3``, ``os.wait4``
and ``os.waitid`` tell more than gevent keeps, and stay the system's.

Invariant: a status is handed out once.
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
"""What is known of a child that has ended: its number, its status, and when."""

_wait: Any = None


def install() -> None:
    """Replace ``os.wait``, where gevent has replaced ``os.waitpid``."""
    global _wait
    if not hasattr(_gevent_os, "_watched_children"):
        return
    _wait, os.wait = os.wait, wait
    popen: Any = import_module("gevent.subprocess").Popen
    for name in ("wait", "_internal_poll"):
        setattr(popen, name, _telling_once(getattr(popen, name)))


def _telling_once(method: Any) -> Any:
    """Return a method of ``Popen`` that takes the status which it tells out of the table."""

    @functools.wraps(method)
    def tell(process: Any, *arguments: Any, **named: Any) -> Any:
        status = method(process, *arguments, **named)
        if status is not None and "_is_told" not in vars(process):
            process._is_told = True  # the number may be another child's by the next call
            _gevent_os._watched_children.pop(process.pid, None)
        return status

    return tell


def wait() -> tuple[int, int]:
    """Do what ``os.wait`` does, letting the other threads run meanwhile."""
    children: dict[int, Any] = _gevent_os._watched_children  # a watcher, or what is known of a child that has ended
    while children:
        ended = [cast("Ended", known) for known in children.values() if isinstance(known, tuple)]
        if ended:
            pid, status, _ = min(ended, key=lambda known: known[2])
            del children[pid]
            return pid, status
        with _get_hub().loop.child(0, False) as any_child:
            _get_hub().wait(any_child)
            pid, status = any_child.rpid, any_child.rstatus
        if pid not in children:  # somebody else's, a subprocess for instance
            return pid, status
        while not isinstance(children.get(pid, ()), tuple):  # its watcher is still to be called
            _sleep(0)
    found: tuple[int, int] = _wait()
    return found
