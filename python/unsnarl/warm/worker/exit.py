"""The end of a worker: the same steps and the same status as the interpreter's, without the teardown if possible.

CPython's order (Py_RunMain, Py_FinalizeEx): print the exception, wait for threads, run atexit functions, flush the
standard streams, tear everything down. The last step takes most of the time. It is skipped if no object made since
the fork could notice (``teardown``).

Invariant: the client receives the status only after all effects that other processes can see, and after every
descriptor but the connection is closed.
"""

from __future__ import annotations

import _socket
import atexit
import gc
import os
import sys

from .. import wire
from . import import_hooks, pages, teardown
from .run_changes import RunChanges

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    import signal as _signal
    from types import TracebackType
    from typing import Any

    from .spare import Taken
else:
    import _signal

# Prints exceptions where the program's hook does not, even if the program has replaced sys.__excepthook__.
_DISPLAY = sys.__excepthook__
# The directory of the whole package.
_HERE = __file__.rpartition("/worker/")[0] + "/"
_SIGINT_STATUS = -2
# Status of a command whose last output could not be written.
_LOST_STATUS = 120
# The interpreter's messages about exceptions that it ignores at its end; before 3.13 it names the object instead.
_ON_FLUSHING = _ON_SHUTDOWN = ""
if sys.version_info >= (3, 13):
    _ON_FLUSHING = f"Exception ignored {'on' if sys.version_info < (3, 14) else 'while'} flushing sys.stdout"
    _ON_SHUTDOWN = "Exception ignored on threading shutdown"
# Most bytes of the list of modules that runs have loaded.
_WANTED_BYTES = 1 << 20


class Ending:
    """The end of one worker."""

    def __init__(self, conn: int, taken: Taken) -> None:
        self._conn = conn
        self._inherited, self._flush_c = taken.inherited, taken.flush_c
        self._pid = os.getpid()
        self._before = frozenset(sys.modules)
        self._changes = RunChanges(taken.inherited)
        self.problem: BaseException | None = None
        """The exception that the program has raised, or None."""

    def arm(self) -> None:
        """Close the connection in processes that the command forks, and note what it changes of this one."""
        os.register_at_fork(after_in_child=self._forget)
        self._changes.begin()

    def _forget(self) -> None:
        if self._conn >= 0:
            os.close(self._conn)
            self._conn = -1

    def after(self) -> None:
        """End the process after the program's last line, or after its exception."""
        problem, self.problem = self.problem, None
        if self._inherited.command.kind == "script" and not self._inherited.command.is_on_path:
            _flush_quietly()  # before the exception is printed, as _PyRun_SimpleFile does
        status = _status(problem)
        del problem
        _wait_for_threads()
        atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  (as the interpreter ends)
        if not _flush() and status != _SIGINT_STATUS:
            status = _LOST_STATUS  # replaces the command's own: Py_RunMain, Py_Exit
        if self._conn < 0 or os.getpid() != self._pid:
            self._finalise(status)
        teardown.flush()
        self._flush_c(None)
        for report in (self._report_modules, self._changes.report, self._report_pages):
            try:
                report()
            except BaseException:
                pass  # bookkeeping of ours: the command has ended, and its status does not depend on it
        if teardown.is_unobserved():
            self._exit(status)
        self._send(wire.LEAVING, _wait_status(status))
        self._finalise(status)

    def _finalise(self, status: int) -> None:
        """End through the interpreter's own finalisation; after an unhandled Ctrl-C by the signal, as in exit_sigint.

        Its last collections free the classes of the imports, and what the command keeps in their attributes: an open
        database, for example. They find none among frozen objects. What the command has frozen itself stays so.
        """
        if gc.get_freeze_count() <= self._inherited.frozen:
            gc.unfreeze()
        if status == _SIGINT_STATUS:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
            os.kill(os.getpid(), _signal.SIGINT)
        raise SystemExit(status)

    def _exit(self, status: int) -> None:
        os.closerange(0, self._conn)
        os.closerange(self._conn + 1, 0x7FFFFFFF)
        self._send(wire.ENDED, _wait_status(status))
        os._exit(status & 0xFF)

    def _send(self, kind: int, value: int) -> None:
        channel = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, self._conn)
        try:
            channel.send(wire.REPLY.pack(kind, value), _socket.MSG_NOSIGNAL)
        except OSError:
            pass  # the client was killed
        channel.detach()

    def _report_modules(self) -> None:
        """Append the modules that this run has loaded itself to the list for the next learning run."""
        baseline = self._inherited.imported.baseline
        if import_hooks.MARK in baseline:
            return
        # What the server has loaded for itself since its imports is not this run's either.
        known = baseline | self._before
        # In the order of the run, in which learning imports them: some modules enter themselves in a list.
        news = [name for name in list(sys.modules) if name not in known and not name.startswith("_unsnarl")]
        lines = "".join(f"{name}\t{file}\n" for name in news if (file := _loaded_file(name)))
        if self._inherited.imported.finders.are_hooked():
            lines = f"{import_hooks.MARK}\t-\n"
        if lines and os.geteuid() == self._owner():
            path = f"{self._inherited.record}.wanted"
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.fchmod(fd, 0o600)  # independent of the command's mask: later runs append to the file
            if os.fstat(fd).st_size < _WANTED_BYTES:
                os.write(fd, lines.encode(errors="surrogateescape"))
            os.close(fd)

    def _owner(self) -> int:
        return os.stat(self._inherited.runtime_directory).st_uid

    def _report_pages(self) -> None:
        """Store which pages this run has written, for later spares."""
        if self._inherited.is_surveyed and os.geteuid() == self._owner():
            pages.store(pages.survey(), f"{self._inherited.stem}.pages.{self._pid}")


def _loaded_file(name: str) -> str:
    module = sys.modules[name]
    # Reading an attribute of a lazy module would load it.
    if "Lazy" in object.__getattribute__(module, "__class__").__name__:
        return ""
    try:
        file = getattr(module, "__file__", None)
    except Exception:
        return ""  # a module of the command's own making
    return file if isinstance(file, str) and file.startswith("/") else ""


def _wait_for_threads() -> None:
    """Wait as wait_for_thread_shutdown does: an interruption is reported and does not change the status."""
    threading = sys.modules.get("threading")
    if threading is None:
        return
    try:
        threading._shutdown()
    except BaseException as problem:
        _report_ignored(problem, threading, _ON_SHUTDOWN)


def _status(problem: BaseException | None) -> int:
    """Print an exception as the interpreter does; return the exit status."""
    if problem is None:
        return 0
    if isinstance(problem, SystemExit):
        return _exit_status(problem)
    trace = problem.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_HERE):
        trace = trace.tb_next
    problem = problem.with_traceback(trace)
    sys.last_type, sys.last_value, sys.last_traceback = type(problem), problem, trace
    if sys.version_info >= (3, 12):
        sys.last_exc = problem
    status = _show(problem, trace)
    if status is None:
        return _SIGINT_STATUS if type(problem) is KeyboardInterrupt else 1
    return status


def _show(problem: BaseException, trace: TracebackType | None) -> int | None:
    """Print an exception as PyErr_PrintEx does; return a status if the hook raises SystemExit."""
    hook = getattr(sys, "excepthook", None)
    if hook is None and not hasattr(sys, "excepthook"):
        _complain("sys.excepthook is missing\n")
        _DISPLAY(type(problem), problem, trace)
        return None
    failure = _failure(hook, type(problem), problem, trace)
    if isinstance(failure, SystemExit):
        return _exit_status(failure)
    if failure is not None:
        _complain("Error in sys.excepthook:\n")
        _DISPLAY(type(failure), failure, failure.__traceback__)
        _complain("\nOriginal exception was:\n")
        _DISPLAY(type(problem), problem, trace)
    return None


def _failure(what: Any, *words: object) -> BaseException | None:
    """Call a function of the program; return its exception, without our line in the traceback."""
    try:
        what(*words)
    except BaseException as raised:
        return raised.with_traceback(raised.__traceback__ and raised.__traceback__.tb_next)
    return None


def _exit_status(problem: SystemExit) -> int:
    """Return the status of a SystemExit, as _Py_HandleSystemExit does; print a code that is no number."""
    try:
        code: object = problem.code
    except BaseException:
        code = problem
    if code is None:
        return 0
    if isinstance(code, int):
        number = int.__index__(code)
        if -1 << 63 <= number < 1 << 63:
            return number & 0xFF
        _report_pending(OverflowError("Python int too large to convert to C long"))
        return 0xFF  # -1
    stream = getattr(sys, "stderr", None)
    if stream is None:
        failure = _failure(lambda: os.write(2, str(code).encode(errors="backslashreplace")))
    else:
        failure = _failure(lambda: stream.write(str(code)))
    _complain("\n")
    if failure is not None and stream is not None:
        _report_pending(failure)
    return 1


def _report_pending(problem: BaseException) -> None:
    """Report an exception that is set while the interpreter waits for threads; only 3.12 and 3.13 print it."""
    if (3, 12) <= sys.version_info < (3, 14):
        _report_ignored(problem, None, _ON_SHUTDOWN)


def _complain(text: str) -> None:
    """Write as PySys_WriteStderr does: to the descriptor if the stream fails."""
    try:
        sys.stderr.write(text)
    except BaseException:
        try:
            os.write(2, text.encode())
        except OSError:
            pass  # the descriptor is closed


def _flush_quietly() -> None:
    for name in ("stderr", "stdout"):
        stream = getattr(sys, name, None)
        if stream is not None:
            _failure(lambda stream=stream: stream.flush())


def _flush() -> bool:
    """Flush the standard streams as flush_std_files does; False if one failed. Only stdout's failure is reported."""
    is_good = True
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name, None)
        if stream is None or _is_closed(stream):
            continue
        try:
            stream.flush()
        except BaseException as problem:
            is_good = False
            if name == "stdout":
                _report_ignored(problem, stream, _ON_FLUSHING)
    return is_good


def _is_closed(stream: object) -> bool:
    try:
        return bool(getattr(stream, "closed", False))
    except BaseException:
        return False


def _report_ignored(problem: BaseException, thing: object, words: str) -> None:
    """Report like PyErr_WriteUnraisable, or like PyErr_FormatUnraisable if there are words.

    The hook only accepts an argument of the interpreter's own type, which a failing finaliser provides.
    """
    trace: TracebackType | None = problem.__traceback__ and problem.__traceback__.tb_next  # without our own line
    problem = problem.with_traceback(trace)
    kinds: list[Any] = []

    class Failing:
        def __del__(self) -> None:
            raise RuntimeError

    hook = sys.unraisablehook
    sys.unraisablehook = lambda given: kinds.append(type(given))
    Failing()
    sys.unraisablehook = hook
    try:
        hook(kinds[0]((type(problem), problem, trace, words or None, None if words else thing)))
    except BaseException:
        pass  # the program's hook fails


def _wait_status(status: int) -> int:
    return int(_signal.SIGINT) if status == _SIGINT_STATUS else (status & 0xFF) << 8
