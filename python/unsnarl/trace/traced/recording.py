"""Starts the recording in the traced process, names its threads, and ends the recording.

Runs before the program's first line, under the rules of ``_unsnarl_boot``: it imports no module of
the standard library from a file, and leaves no trace in the program's namespace.

Invariants: each process has one file, and a new one after a fork or an exec; the files of one
directory together exceed ``DIRECTORY_BYTES`` by at most one file; the program runs whatever fails here.
"""

import os
import sys

from unsnarl import _fork_exec, _native
from unsnarl.run_settings import RunSettings
from unsnarl.trace.traced import tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, ModuleType
    from typing import Any

SUFFIX = ".trace"
"""Suffix of the files in the directory."""

UNTRACED_SUFFIX = ".untraced"
"""Suffix of an empty file that stands for a process that was not recorded because the directory was full."""

DETACHED = "done"
"""An empty file in the directory: the recording of an attached process has ended."""

CHILD_CHUNKS = 1024
"""4 KiB chunks of a child's recording."""

LONGEST_INTERVAL_S = 1e6
"""The longest switch interval that is recorded as such; longer ones are recorded as this."""

DIRECTORY_BYTES = 1 << 29
"""Half a gigabyte; beyond it, processes are counted and not recorded."""

SEPARATOR = "\x1f"
"""Separates the words of a command line in the text of a recording."""


class Recording:
    """The recording of this process, and the functions that it has wrapped."""

    __slots__ = ("_replaced", "_settings", "_tasks")

    def __init__(self, settings: RunSettings) -> None:
        """Keep the settings; recording starts with ``begin``."""
        self._settings = settings
        self._replaced: list[tuple[ModuleType | type, str, Any]] = []
        self._tasks = tasks.TaskWaits()

    @property
    def directory(self) -> str:
        """Return the directory of the recording."""
        return self._settings.trace or ""

    def begin(self) -> None:
        """Start to record, unless the directory is full."""
        directory = self.directory
        if _is_full(directory):
            _note_untraced(directory)
            return
        is_first = _is_first(directory)
        path = os.path.join(directory, f"{os.getpid()}-{_monotonic_ns()}{SUFFIX}")
        self._start(
            path,
            self._settings.trace_chunks if is_first else CHILD_CHUNKS,
            _about_program(),
            self._settings.executed_ns if is_first else 0,
            round(min(sys.getswitchinterval(), LONGEST_INTERVAL_S) * 1e9),
        )
        _name_threads()
        self._tasks.begin(path)

    def _start(self, path: str, chunks: int, text: str, executed_ns: int, interval_ns: int) -> None:
        try:
            _native.trace_start(path, chunks, text, executed_ns, interval_ns, fork_exec=_fork_exec.find())
        except _native.Unsupported as error:
            from unsnarl.errors import UnsupportedInterpreter

            raise UnsupportedInterpreter(*error.args) from None

    def watch(self, *, is_running: bool = False) -> None:
        """Time imports, name threads, take stacks, and record the time of the program's first line.

        ``is_running``: the program is past its first line.
        """
        frame = sys._getframe()  # pyright: ignore[reportPrivateUsage]
        _native.trace_calibrate(frame.f_code, frame.f_lineno)
        bootstrap: ModuleType | None = sys.modules.get("_frozen_importlib")
        if bootstrap is not None:
            self._replace(
                bootstrap,
                "_find_and_load",
                lambda original: _native.TimedImport(original, tasks.MODULES, self._tasks.watch_from_import),
            )
        external: ModuleType | None = sys.modules.get("_frozen_importlib_external")
        loaders = getattr(external, "_LoaderBasics", None)
        if loaders is not None:
            self._replace(loaders, "exec_module", _native.TimedBody)
        import _thread

        for name in ("start_new_thread", "start_joinable_thread"):
            self._replace(_thread, name, _native.NamedStart)
            threading: ModuleType | None = sys.modules.get("threading")
            if threading is not None:
                self._replace(threading, f"_{name}", _native.NamedStart)
        if not is_running and sys.getprofile() is None:
            sys.setprofile(_notice_first_line)

    def _replace(self, module: "ModuleType | type", name: str, wrapper: "Callable[[Any], Any]") -> None:
        original = getattr(module, name, None)
        if original is not None:
            self._replaced.append((module, name, original))
            setattr(module, name, wrapper(original))

    def end(self) -> None:
        """Record the current names of the threads, and end the recording."""
        if not _native.trace_is_on():
            return
        try:
            _name_threads()
        finally:
            self._stop()

    def _stop(self) -> None:
        if sys.getprofile() is _notice_first_line:
            sys.setprofile(None)
        _native.trace_stop()
        self._tasks.end()
        for module, name, original in self._replaced:
            if type(getattr(module, name, None)) in (_native.TimedImport, _native.TimedBody, _native.NamedStart):
                setattr(module, name, original)

    def begin_in_child(self) -> None:
        """Start a new file for the child of a fork, if children are traced."""
        self._tasks.leave()
        if not self._settings.children:
            return
        try:
            self.begin()
        except Exception:  # noqa: BLE001 -- the child runs without a recording, and has nowhere to report it
            return


def start(settings: RunSettings) -> None:
    """Record this process until it ends.

    Raises:
        Exception: it cannot be recorded; the interpreter is unchanged.
    """
    recording = Recording(settings)
    recording.begin()
    recording.watch()
    import atexit

    atexit.register(recording.end)
    os.register_at_fork(after_in_child=recording.begin_in_child)


_attached: Recording | None = None
_is_attaching = False
_is_unwanted = False
"""Whether ``detach`` was called during ``attach``: one remote script can interrupt another (3.14)."""


def attach(settings: RunSettings) -> None:
    """Record this running process until ``detach``; raises as ``start`` does.

    Ends an earlier attached recording first, whose tracer was killed. A ``detach`` that interrupts this
    function takes effect once the recording has started completely.
    """
    global _attached, _is_attaching, _is_unwanted
    detach()
    recording = Recording(settings)
    _is_attaching, _is_unwanted = True, False
    try:
        recording.begin()
        recording.watch(is_running=True)
    finally:
        _attached, _is_attaching = recording, False
        if _is_unwanted:
            detach()


def detach() -> None:
    """End the recording that ``attach`` started, if it is running, and mark its directory as done."""
    global _attached, _is_unwanted
    if _is_attaching:
        _is_unwanted = True
        return
    if _attached is None:
        return
    # Even if the lines below fail, the process can be attached to again.
    ended, _attached = _attached, None
    try:
        ended.end()
    finally:
        _note_detached(ended.directory)


def _note_detached(directory: str) -> None:
    try:
        os.close(os.open(os.path.join(directory, DETACHED), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return  # the tracer has ended and has removed the directory


def _notice_first_line(frame: "FrameType", event: str, _argument: object) -> None:
    """Record the time at which the program's main module is called, and uninstall itself."""
    if (
        event == "call"
        and frame.f_code.co_name == "<module>"
        and frame.f_globals.get("__name__") == "__main__"
        and not frame.f_code.co_filename.startswith("<frozen")
    ):
        sys.setprofile(None)
        _native.trace_first_line()


def _name_threads() -> None:
    """Record the names of all threads that ``threading`` knows."""
    import _thread

    threading = sys.modules.get("threading")
    if threading is None or not hasattr(threading, "enumerate"):
        _native.trace_name(_thread.get_ident(), "MainThread")
        return
    try:
        threads = list(threading.enumerate())
    except Exception:  # noqa: BLE001 -- the program may have a module of its own named threading
        return
    for thread in threads:
        try:
            if thread.ident is not None:
                _native.trace_name(thread.ident, _printable(str(thread.name)))
        except Exception:  # noqa: BLE001 -- the name may be a property of the program that raises
            continue


def _printable(text: str) -> str:
    """Replace what UTF-8 cannot encode (surrogates from file names) by question marks."""
    return text.encode(errors="replace").decode()


def _monotonic_ns() -> int:
    import time

    return time.monotonic_ns()


def _is_full(directory: str) -> bool:
    """Tell whether the recordings together have reached their limit."""
    with os.scandir(directory) as entries:
        return sum(entry.stat().st_size for entry in entries if entry.name.endswith(SUFFIX)) > DIRECTORY_BYTES


def _is_first(directory: str) -> bool:
    """Tell whether this is the first process of the program to record."""
    return not any(name.endswith(SUFFIX) for name in os.listdir(directory))


def _note_untraced(directory: str) -> None:
    path = os.path.join(directory, f"{os.getpid()}-{_monotonic_ns()}{UNTRACED_SUFFIX}")
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _about_program() -> str:
    """Return the version, the directory of the standard library, and the command line."""
    version = ".".join(map(str, sys.version_info[:3]))
    library = os.path.dirname(os.__file__ or "")
    words = [sys.implementation.name, version, library, *sys.orig_argv]
    return SEPARATOR.join(_printable(word) for word in words)
