"""The worker: applies a request to this process, runs the command, and ends as the command would.

The order is part of the protocol: the process group first (signals), descriptors before the environment (a failure
can still be refused), the program last.

Invariant: when the program's first line runs, everything it can query in Python is as in a plain run, except for the
differences that docs/concepts/warm.md lists.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import sys
import time

from .. import changed, wire
from ..importing import preload
from ..importing.trampolines import KEPT
from ..renewals import IN_PLACE, Recipe, Renewal
from . import forks, signals, streams, teardown
from .exit import Ending

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from typing import Any

    from .inherited import Inherited
    from .spare import Taken


# Of a key that `multiprocessing` draws (process._MainProcess).
_KEY_BYTES = 32


class UnfitError(Exception):
    """The caller would import another module than the server has imported, or would import it otherwise."""


def run(taken: Taken) -> None:
    """Run the request. Raises SystemExit at its end, or ends the process."""
    try:
        conn = _apply(taken)
        ending = Ending(conn, taken)
        taken.inherited.imported.main.begin()
    except BaseException as problem:
        taken.decline(problem)
    try:
        taken.await_go()
        ending.arm()
        forks.begin()
        command = taken.inherited.command
        if command.kind == "module" or command.is_on_path:
            import runpy

            as_main: Any = runpy  # what `python -m` calls is private, and has no type
            name = command.name if command.kind == "module" else "__main__"
            as_main._run_module_as_main(name, alter_argv=command.kind == "module")
        else:
            exec(taken.inherited.imported.code, taken.inherited.imported.main.names)
    except BaseException as raised:
        if not taken.is_committed:
            taken.decline(raised)  # a Ctrl-C for the group, before GO
        ending.problem = raised
    # Outside of the handler: the exception is no context of what is raised now, and no frame refers to it.
    ending.after()


def rehearse(inherited: Inherited) -> None:
    """Apply the circumstances of the server's first caller, while no client waits.

    The first write to a page after a fork copies the page. The pages that every request writes are copied here.
    """
    imported = inherited.imported
    environ = [name + b"=" + value for name, value in inherited.environment.items()]
    imported.copies.fill(_environment(environ, imported.environment_delta))
    time.tzset()
    streams.rebuild(imported.line_buffering)
    imported.limits.rehearse()
    _renew(imported.renewals)
    signals.apply(wire.Request.empty(), {})
    teardown.is_unobserved()
    compile("None", "rehearsal", "exec")


def _apply(taken: Taken) -> int:
    """Apply the request; return the new number of the connection."""
    request, imported = taken.request, taken.inherited.imported
    if imported.asks_signals and signals.ignored(request):
        raise UnfitError("the caller ignores signals, which the imports ask for")
    if name := changed.news(taken.inherited.record, imported.changed_size, imported.late):
        raise UnfitError(f"a run has changed {changed.in_words(name)}, which the imports have read")
    if taken.inherited.is_in_session:
        os.setpgid(0, os.getpgid(taken.peer))
    else:
        os.setpgid(0, 0)
    os.fchdir(taken.fds[0])
    os.umask(request.umask)
    conn = _install_descriptors(taken)
    imported.copies.fill(_environment(request.environ, imported.environment_delta))
    time.tzset()  # /etc/localtime may have changed, and localtime_r does not read it again
    _arguments(taken)
    _kept_variables(imported.kept_variables)
    imported.limits.apply(request.limits)
    signals.apply(request, taken.inherited.handlers)
    _renew(imported.renewals)
    streams.rebuild(imported.line_buffering)
    imported.temporary.renew()
    _renew_authkey()
    command = taken.inherited.command
    _name(command.name if command.kind == "script" else sys.executable)
    return conn


def _install_descriptors(taken: Taken) -> int:
    targets = taken.request.fds
    if not KEPT.isdisjoint(targets):
        raise ValueError("a descriptor has the number that libffi's has here")
    above = max(*targets, 99) + 1
    sources = taken.fds[1:]
    occupied = set(targets)
    sources = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above) if fd in occupied else fd for fd in sources]
    conn = fcntl.fcntl(taken.conn.detach(), fcntl.F_DUPFD_CLOEXEC, above)
    for source, target in zip(sources, targets, strict=True):
        os.dup2(source, target)
    taken.conn = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, conn)
    low = 0
    for keep in sorted((*targets, conn, *KEPT)):
        if keep > low:  # os.closerange(n, n) may close everything: its last number is n - 1, unsigned
            os.closerange(low, keep)
        low = keep + 1
    os.closerange(low, 0x7FFFFFFF)
    return conn


def environment_data() -> dict[bytes, bytes]:
    """Return the dictionary beneath ``os.environ`` and ``os.environb``."""
    environ: Any = os.environ
    data: dict[bytes, bytes] = environ._data
    return data


def _environment(entries: list[bytes], delta: list[tuple[bytes, bytes | None]]) -> dict[bytes, bytes]:
    """Set the environment; return what it is without the changes of the imports."""
    data = environment_data()
    for name in list(data):
        os.unsetenv(name)
    data.clear()
    for entry in entries:
        end = entry.find(b"=", 1)
        # As in posixmodule.c: an entry without `=` is skipped; of two entries of one name the first wins.
        if end > 0 and (name := entry[:end]) not in data:
            data[name] = entry[end + 1 :]
            os.putenv(name, data[name])
    given = dict(data)
    first: Any = sys.modules["posix"]
    first.environ.clear()
    first.environ.update(given)
    for name, value in delta:
        if value is not None:
            data[name] = value
            os.putenv(name, value)
        elif data.pop(name, None) is not None:
            os.unsetenv(name)
    return given


def _arguments(taken: Taken) -> None:
    raw = taken.request.argv
    text = [os.fsdecode(word) for word in raw]
    for words in (sys.argv, sys.orig_argv):
        words[words.index(preload.SENTINEL) :] = text
    for kept, index, is_bytes in taken.inherited.imported.argument_lists:
        kept[index : index + 1] = raw if is_bytes else text
    if taken.inherited.command.kind == "module" and not sys.flags.safe_path:
        hidden = preload.hidden(taken.inherited.imported.hideable)
        if hidden:
            raise UnfitError(f"{hidden} in the caller's directory hides what is loaded")
        sys.path.insert(0, os.getcwd())


def _kept_variables(kept: list[tuple[object, str, bytes, bool]]) -> None:
    for module, key, name, is_bytes in kept:
        raw = os.environb.get(name)
        setattr(module, key, raw if is_bytes or raw is None else os.fsdecode(raw))


def _renew(renewals: list[Renewal]) -> None:
    drawn: dict[Recipe, object] = {}  # globals with random digits all have one value
    for one in renewals:
        if one.recipe not in IN_PLACE and one.module in sys.modules:
            value = drawn[one.recipe] if one.recipe in drawn else one.recipe.value()
            if one.recipe.is_random:
                drawn[one.recipe] = value
            holder, _, name = one.name.rpartition(".")
            module = sys.modules[one.module]
            setattr(getattr(module, holder) if holder else module, name, value)


def _name(path: str) -> None:
    """Set the name that `ps` shows, as the kernel sets it from the file's name."""
    try:
        fd = os.open("/proc/self/comm", os.O_WRONLY)
        os.write(fd, os.fsencode(os.path.basename(path))[:15])
        os.close(fd)
    except OSError:
        pass  # the name is for people only


def _renew_authkey() -> None:
    """Draw a new key by which processes of `multiprocessing` authenticate, unless an import has chosen one."""
    process: Any = sys.modules.get("multiprocessing.process")
    if process is not None:
        current = process.current_process()
        key = current.authkey
        if len(key) == _KEY_BYTES and not bytes(key).isascii():  # random; a chosen one is usually a text
            current.authkey = os.urandom(_KEY_BYTES)
