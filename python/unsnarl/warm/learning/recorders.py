"""Recorders: wrappers around the functions and objects by which imports read the state of the process.

Invariant: a wrapped function or object answers as the plain one does.
"""

from __future__ import annotations

import _thread
import _warnings
import os
import sys

from ..renewals import CGI_ENVIRON, DIRECTORY, Renewal
from . import effects, environment_copies, environment_walk, path_lookups

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .watch import Watch


def install(watch: Watch) -> None:
    """Put all recorders in place."""
    _watch_environment(watch)
    _watch_first_environment(watch)
    _let_names_be_interned()
    _watch_process(watch)
    _watch_umask(watch)
    _watch_terminals(watch)
    _watch_input(watch)
    _watch_output(watch)
    _watch_random(watch)
    _watch_kinds(watch)
    _watch_signals(watch)
    _watch_locale(watch)
    _show_warnings()
    if watch.others is not None:
        watch.others.watch_paths()


def _variable_name(key: object) -> str:
    return os.fsdecode(key) if isinstance(key, (str, bytes)) else repr(key)


def _value(watch: Watch, key: Any, plain: Callable[[Any], Any]) -> Any:
    if environment_walk.is_of_walk(key):
        return plain(environment_walk.plain(key))
    if watch.walks.is_unread or _is_for_a_program():  # of a copy, after all names
        return plain(key)
    name = _variable_name(key)
    watch.read_variable(name)
    return watch.found(name, plain(key))


def _names(watch: Watch, names: Iterator[Any], *, may_walk: bool) -> Iterator[Any]:
    if watch.sums_up() or _is_known(watch):
        return watch.walks.unread(names)
    if watch.is_on and may_walk:
        return watch.walk(ENVIRONMENT).names(names)
    watch.fail(ENVIRONMENT)
    return names


# A function whose result a class keeps, which each worker computes again.
_FOR_A_CLASS = [("wsgiref.handlers", "read_environ"), ("wsgiref.handlers", "BaseHandler")]
_OF_CLASS = Renewal("wsgiref.handlers", "BaseHandler.os_environ", CGI_ENVIRON)


def _is_between(caller: tuple[str, str]) -> bool:
    """Return whether a caller is a view of the environment, or its own method."""
    return caller[0] == "collections.abc" or caller == ("os", "copy")


def _askers() -> list[tuple[str, str]]:
    """Return the functions that ask for the environment or the directory, the nearest first."""
    return [one for one in path_lookups.callers(4) if not _is_between(one)]


def _is_for_a_program() -> bool:
    """Return whether something is read to be handed to a program that only prints."""
    return any(asker in effects.FOR_A_PROGRAM for asker in _askers()[:1])


def _is_known(watch: Watch) -> bool:
    """Return whether a known function walks through the environment."""
    if not watch.is_on:
        return False
    if _is_for_a_program():
        return True
    if _askers()[:2] == _FOR_A_CLASS:
        watch.renewals.append(_OF_CLASS)
        return True
    return False


def _watch_environment(watch: Watch) -> None:
    class Watched(os._Environ[str]):  # pyright: ignore[reportPrivateUsage]  (the type of os.environ)
        def __getitem__(self, key: Any) -> str:
            found: str = _value(watch, key, super().__getitem__)
            return found

        # A variable that an import sets is part of the key, too. If only changed values were found, a caller that
        # already has the value would get a server that does not set it for other callers.
        def __setitem__(self, key: Any, value: Any) -> None:
            watch.change_variable(_variable_name(key))
            super().__setitem__(key, value)

        def __delitem__(self, key: Any) -> None:
            watch.change_variable(_variable_name(key))
            super().__delitem__(key)

        def __iter__(self) -> Iterator[str]:
            return _names(watch, super().__iter__(), may_walk=self is os.environ)

        def copy(self) -> dict[str, str]:
            found = _copy(watch, self)
            return super().copy() if found is None else found

    for environ in (os.environ, os.environb):
        watched: Any = environ
        watched.__class__ = Watched


def _copy(watch: Watch, environ: Any) -> dict[Any, Any] | None:
    """Return a reporting copy of the environment; None if each worker could not fill it again."""

    def change(name: Any) -> None:
        watch.change_variable(_variable_name(name))
        if not watch.copies.are_fillable:
            watch.fail(ENVIRONMENT)  # a worker would find this change before the import that makes it

    def read(name: Any, plain: Callable[[Any], Any]) -> Any:
        return _value(watch, name, plain)

    if not (watch.is_on and watch.copies.are_fillable and (environ is os.environ or environ is os.environb)):
        return None
    if _is_for_a_program():
        return None  # it ends with the program
    watch.copy()
    beneath: Any = environ
    made = {beneath.decodekey(name): beneath.decodevalue(value) for name, value in beneath._data.items()}
    reports = environment_copies.Reports(read, change, lambda: watch.fail(ENVIRONMENT))
    return watch.copies.make(made, reports, watch.later(ENVIRONMENT))


def _watch_first_environment(watch: Watch) -> None:
    """Watch ``posix.environ``, the first environment: what is read there is part of the key, even if only kept."""

    class Watched(dict[bytes, bytes]):
        def __getitem__(self, key: Any) -> bytes:
            watch.change_variable(_variable_name(key))
            return super().__getitem__(key)

        def get(self, key: Any, default: Any = None) -> Any:
            watch.change_variable(_variable_name(key))
            return super().get(key, default)

        def __contains__(self, key: object) -> bool:
            watch.change_variable(_variable_name(key))
            return super().__contains__(key)

    def whole(name: str) -> Any:
        plain = getattr(dict, name)

        def read(self: Any, *args: Any) -> Any:
            watch.fail(ENVIRONMENT)
            return plain(self, *args)

        return read

    # An overridden __iter__ also makes dict() and the like call keys() (PyDict_Merge).
    for name in ("__iter__", "__len__", "copy", "items", "keys", "values"):
        setattr(Watched, name, whole(name))
    posix: Any = sys.modules["posix"]
    posix.environ = Watched(posix.environ)


def _let_names_be_interned() -> None:
    """Let names of a walk through the environment be interned, which takes plain texts only."""
    original = sys.intern

    def intern(text: str, /) -> str:
        return original(environment_walk.plain(text) if environment_walk.is_of_walk(text) else text)

    sys.intern = intern


def _watch_kinds(watch: Watch) -> None:
    """Watch for imports that ask which kind of file a standard stream is."""

    def judged(name: str) -> None:
        plain = getattr(os, name)

        def watched(what: Any = None, *args: Any, **named: Any) -> Any:
            if type(what) is int and 0 <= what <= 2:
                watch.fail(KIND)
            return plain(what, *args, **named)

        setattr(os, name, watched)

    # Not get_blocking: ansible checks it in each run, and ends if a stream does not block.
    for name in ("fstat", "lseek"):
        judged(name)


def _watch_signals(watch: Watch) -> None:
    """Watch for imports that ask which signals the caller ignores; here and in a server it is none."""
    for module in {"signal", "_signal"} & sys.modules.keys():
        where: Any = sys.modules[module]
        plain = where.getsignal

        def getsignal(*args: Any, plain: Callable[..., Any] = plain, **named: Any) -> Any:
            watch.asks_signals = watch.asks_signals or watch.is_on
            return plain(*args, **named)

        where.getsignal = getsignal


def _show_warnings() -> None:
    """Show the warnings that a plain run shows because they blame the program, which here is the importing module.

    A deprecation that a module announces to its importer (``warnings.warn(…, stacklevel=2)``) is shown if that is
    ``__main__``, by a filter that the interpreter has from the start. A worker would not print it again.
    """
    filters: Any = _warnings
    ours = [
        (*one[:3], f"{__package__}.probe", one[4])
        for one in filters.filters
        if type(one[3]) is str and one[3] == "__main__"
    ]
    filters.filters[:0] = ours


def _watch_umask(watch: Watch) -> None:
    original = os.umask

    def umask(mask: int) -> int:
        watch.asks_umask = watch.asks_umask or watch.is_on
        return original(mask)

    os.umask = umask


def _watch_locale(watch: Watch) -> None:
    """Watch for an import that takes the locale from the environment, which the C library reads then."""
    import _locale

    plain = _locale.setlocale

    def setlocale(category: int, locale: Any = None, /) -> str:
        if locale == "":
            for name in _OF_LOCALE:
                watch.change_variable(name)
        return plain(category, locale)

    _locale.setlocale = setlocale
    if "locale" in sys.modules:
        sys.modules["locale"]._setlocale = setlocale  # type: ignore[attr-defined]


# setlocale(3).
_OF_LOCALE = (
    *("LC_COLLATE", "LC_MONETARY", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME"),
    *("LC_ADDRESS", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_NAME", "LC_PAPER", "LC_TELEPHONE"),
)


def _watch_directory(watch: Watch) -> None:
    for name in ("getcwd", "getcwdb"):

        def where(original: Callable[[], object] = getattr(os, name)) -> object:  # noqa: B008 (bound now, on purpose)
            if watch.is_on and _is_for_a_program():
                return original()
            watch.read_directory()
            return watch.found(DIRECTORY, original())

        setattr(os, name, where)


def _watch_process(watch: Watch) -> None:
    def judged(place: object, name: str, reason: str, judge: Callable[[str], None]) -> None:
        original = getattr(place, name)

        def watched(*args: object, **named: object) -> object:
            judge(reason)
            return original(*args, **named)

        setattr(place, name, watched)

    judged(os, "getppid", "asks for the parent process", watch.rule_out)
    judged(os, "getpgrp", "asks for the process group", watch.rule_out)
    _watch_directory(watch)
    if sys.version_info < (3, 12):
        # No audit event announces it; `threading` has imported it by name.
        places: list[tuple[object, str]] = [(_thread, "start_new_thread"), (_thread, "start_new")]
        if "threading" in sys.modules:
            places.append((sys.modules["threading"], "_start_new_thread"))
        for place, name in places:
            judged(place, name, "starts a thread", watch.forbid)


def ask_terminal(watch: Watch, fd: int, *, is_size: bool) -> None:
    """Note that something was asked of a descriptor that a terminal has, and no other file.

    The kind of the streams then belongs to the key, and the size of the terminal. Where none is a terminal, the answer
    is an error in each run.
    """
    watch.asks_tty = watch.asks_tty or watch.is_on
    if is_size and fd <= _LAST_STREAM:
        watch.asks_size = watch.asks_size or watch.is_on
    elif _isatty(fd):
        watch.fail(TERMINAL)


TERMINAL = "asks for more than the size of the terminal"
# The number of the request (ioctl_tty(2)) is this one on all architectures that unsnarl knows (asm-generic/ioctls.h).
TIOCGWINSZ = 0x5413
_LAST_STREAM = 2
_isatty = os.isatty


def _watch_terminals(watch: Watch) -> None:
    original = os.isatty
    plain_size = os.get_terminal_size

    def get_terminal_size(fd: int = 1, /) -> os.terminal_size:
        ask_terminal(watch, fd, is_size=True)
        return plain_size(fd)

    os.get_terminal_size = get_terminal_size

    def isatty(fd: int) -> bool:
        watch.asks_tty = watch.asks_tty or (watch.is_on and fd <= 2)
        return original(fd)

    os.isatty = isatty
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        layers: list[Any] = [stream, stream.buffer, getattr(stream.buffer, "raw", stream.buffer)]
        for layer in layers:

            def ask(plain: Callable[[], bool] = layer.isatty) -> bool:
                watch.asks_tty = watch.asks_tty or watch.is_on
                return plain()

            try:
                layer.isatty = ask
            except AttributeError:
                watch.notes.append(f"{type(layer).__name__}.isatty cannot be watched")


def _watch_input(watch: Watch) -> None:
    """Forbid reading the standard input, by the stream or by descriptor 0: it belongs to the run."""
    stream: Any = sys.stdin
    raw: Any = getattr(getattr(stream, "buffer", None), "raw", None)
    for name in ("read", "readall", "readinto"):

        def read(*args: object, plain: Callable[..., object] = getattr(raw, name, _nothing)) -> object:  # noqa: B008
            watch.forbid(INPUT)
            return plain(*args)

        if raw is not None:
            setattr(raw, name, read)
    by_number = os.read

    def read_by_number(fd: int, length: int, /) -> bytes:
        if fd == 0:
            watch.forbid(INPUT)
        return by_number(fd, length)

    os.read = read_by_number


def _watch_output(watch: Watch) -> None:
    """Watch for an import that prints: each run has to print it. What C code prints is seen later."""
    for stream in (sys.stdout, sys.stderr):
        layers: list[Any] = [stream, getattr(stream.buffer, "raw", stream.buffer)]
        for layer in layers:

            def write(data: Any, /, plain: Callable[[Any], int] = layer.write) -> int:
                if len(data):
                    watch.fail(OUTPUT)
                return plain(data)

            layer.write = write
    for name in ("write", "writev"):

        def by_number(fd: int, data: Any, /, plain: Callable[..., int] = getattr(os, name)) -> int:  # noqa: B008
            if fd in (1, 2):
                watch.fail(OUTPUT)
            return plain(fd, data)

        setattr(os, name, by_number)


def end_import() -> None:
    """Let what an import has left in the buffers of the standard streams be its output."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            pass  # another object is in its place, which is found elsewhere


OUTPUT = "prints"
INPUT = "reads the standard input"
KIND = "asks for the kind of a standard stream"
ENVIRONMENT = "reads the whole environment"
# Files whose content is another one in each process, and what reading them amounts to.
_OF_THE_PROCESS = {
    ENVIRONMENT: ("/proc/self/environ", f"/proc/{os.getpid()}/environ"),
    INPUT: ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"),
    KIND: ("/dev/stdout", "/dev/stderr", "/dev/fd/1", "/dev/fd/2", "/proc/self/fd/1", "/proc/self/fd/2"),
}


def of_the_process(path: object, name: str) -> str:
    """Return what it amounts to if a path, or a descriptor, leads to what only this process has; or nothing."""
    if type(path) is int and 0 <= path <= 2:
        return KIND
    return next((what for what, paths in _OF_THE_PROCESS.items() if name in paths), "")


def _nothing() -> None:
    """Take the place of a missing function."""


def _watch_random(watch: Watch) -> None:
    """Watch `random` from when it is loaded: its last statement registers a function for forks."""
    plain = os.register_at_fork

    def register_at_fork(**functions: Any) -> None:
        if sys._getframe(1).f_globals.get("__name__") == "random":  # pyright: ignore[reportPrivateUsage]
            _watch_seed(watch)
        plain(**functions)

    os.register_at_fork = register_at_fork
    if "random" in sys.modules:
        _watch_seed(watch)


def _watch_seed(watch: Watch) -> None:
    """Watch for an import that seeds the global generator: each worker seeds it again at the fork."""
    module = sys.modules["random"]
    for name in ("seed", "setstate"):

        def seed(*args: Any, plain: Callable[..., object] = getattr(module, name), **named: Any) -> object:  # noqa: B008
            if (args and args[0] is not None) or named.get("a") is not None:
                watch.fail("seeds the generator of random numbers")
            return plain(*args, **named)

        setattr(module, name, seed)
