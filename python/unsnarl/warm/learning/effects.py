"""Veto on side effects: which audit events of an import are forbidden in a learning run, and which are harmless.

The learning run and the server import modules that a run has imported already. A file that such an import writes
or removes, a message it sends, a program it starts, would be written, removed, sent or started a second time,
without a call of the command. The audit hook raises before that happens, and the module is left to the runs.

| allowed | reason |
|---|---|
| writing in ``__pycache__`` | any import may write there, and only what follows from the source |
| ``/dev/null``, terminals, the standard streams | no trace is left; output is noticed elsewhere |
| temporary files | belong to this process; :mod:`importing.temporary` judges those that are left |
| making a directory that exists | changes nothing |
| making a new directory | a run makes or finds it too; it is removed again if the module is not imported ahead |
| ``/sbin/ldconfig -p`` | prints a file; ``ctypes.util.find_library`` runs it |
| ``file -b``, of the interpreter | prints the kind of that file; ``platform.architecture`` runs it |
| ``uname -p`` | prints the kind of the processor; ``platform.uname()[0]`` runs it |
| ``git version`` | GitPython runs it to find out whether there is a git |

Invariant: every event that is not listed here as harmless is forbidden before it happens.
"""

from __future__ import annotations

import os
import sys

from . import path_lookups

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from types import FrameType

    from ..importing.temporary import Made


class VetoedError(BaseException):
    """A side effect was vetoed. Not an ``Exception``, so that a handler in the import does not catch it."""


# Audit events with a path, and the position of the argument that names a directory's descriptor.
_CHANGING = {
    "os.remove": ("removes a file", 1),
    "os.rmdir": ("removes a directory", 1),
    "os.truncate": ("cuts a file short", None),
    "os.chmod": ("changes the mode of a file", 2),
    "os.chown": ("changes the owner of a file", 3),
    "os.utime": ("changes the times of a file", 3),
    "os.setxattr": ("changes an attribute of a file", None),
    "os.removexattr": ("changes an attribute of a file", None),
}
# The same with two paths, followed by two descriptors.
_CHANGING_TWO = {"os.rename": "renames a file", "os.link": "makes a link"}
# Events that are forbidden with any arguments.
_ALWAYS = {
    "_thread.start_new_thread": "starts a thread",
    "_thread.start_joinable_thread": "starts a thread",
    "socket.connect": "connects a socket",
    "socket.sendto": "sends a message",
    "socket.sendmsg": "sends a message",
    "os.fork": "forks",
    "os.forkpty": "forks",
    "os.chdir": "changes the working directory",
    "os.fchdir": "changes the working directory",
    "os.killpg": "sends a signal",
    "signal.pthread_kill": "sends a signal",
    "subprocess.Popen": "runs a program",
    "os.posix_spawn": "runs a program",
    "os.spawn": "runs a program",
    "os.exec": "runs a program",
    "os.system": "runs a program",
    "pty.spawn": "runs a program",
    "syslog.syslog": "writes to the system log",
    "builtins.input": "reads the standard input",
}
# Events of a module that change what the modules after it read; runs do not show it if they change it back.
FOR_LATER_IMPORTS = ("os.chdir", "os.fchdir")
# The unwrapped functions: calls from here are not the import's.
_lstat, _readlink = os.lstat, os.readlink
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# An unnamed file: no other process can open it.
_UNNAMED = os.O_TMPFILE & ~os.O_DIRECTORY
_STREAMS = ("/dev/null", "/dev/tty", "/dev/ptmx", "/dev/stdout", "/dev/stderr")
_INPUTS = (0, "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")
_STREAMS_IN = ("/dev/pts/", "/dev/fd/", "/proc/self/fd/")
_LISTING_LIBRARIES = ("/sbin/ldconfig", ["/sbin/ldconfig", "-p"])
LIBRARIES = "/etc/ld.so.cache"
# Programs that only print, the one function that may run each, and how near a caller it is.
_OF_GIT = ("git.cmd", "execute")
_PRINTING = {"file": ("platform", "_syscmd_file"), "uname": ("platform", "from_subprocess"), "git": _OF_GIT}
_NEAR = 8
# Functions that hand the environment to such a program, and to no other one: starting that is forbidden.
FOR_A_PROGRAM = (("platform", "_syscmd_file"), _OF_GIT)
# The beginnings of the variables that change what such a program does.
VARIABLES = {"git": "GIT_"}


def is_local(host: object) -> bool:
    """Return whether no name service is asked for this host."""
    name = host.decode() if isinstance(host, bytes) else str(host)
    return host is None or name == "localhost" or not name.strip("0123456789.:")


def is_listing_libraries(event: str, args: tuple[object, ...]) -> bool:
    """Return whether an event starts the one program that only reads."""
    return event in ("subprocess.Popen", "os.posix_spawn") and args[:2] == _LISTING_LIBRARIES


def _is_reading(event: str, args: tuple[object, ...]) -> bool:
    """Return whether an event starts a program that only reads, and nothing but what a server watches."""
    return is_listing_libraries(event, args) or bool(printing(event, args))


def printing(event: str, args: tuple[object, ...]) -> str:
    """Return the name of the program that an event starts, if it only prints; the search path finds it."""
    name = str(args[0]) if event == "subprocess.Popen" else ""
    if name not in _PRINTING:
        return ""
    words = {"uname": ["-p"], "git": ["version"]}.get(name) or ["-b", os.path.realpath(sys.executable)]
    return name if args[1] == [name, *words] and _PRINTING[name] in path_lookups.callers(_NEAR) else ""


def forbidden(event: str, args: tuple[object, ...], made: list[Made]) -> str | None:
    """Return in words what a forbidden event is about to do, None if it is allowed. ``made`` are temporary files."""
    if event in _ALWAYS:
        return None if _is_reading(event, args) else _ALWAYS[event]
    if event == "open" and args[0] in _INPUTS:
        return "reads the standard input"
    if event == "os.kill":
        return "sends a signal" if args[1] else None
    if event == "sqlite3.connect":
        return None if args[0] in ("", b"", ":memory:", b":memory:") else "opens a database"
    found = _change(event, args)
    if found is None or _caller() == "tempfile":
        return None
    what, paths = found
    return None if all(is_temporary(path, made) for path in paths) else what


def _change(event: str, args: tuple[object, ...]) -> tuple[str, list[str]] | None:
    """Return in words the change and the paths of the files; None if no file is changed."""
    if event == "open":
        path, flags = path_lookups.text_of(args[0]), args[2]
        is_harmless = not isinstance(flags, int) or not flags & _WRITING or flags & _UNNAMED or _is_stream(path)
        return None if is_harmless or not path else ("writes a file", [path])
    if event in _CHANGING:
        what, at = _CHANGING[event]
        return what, [_whole(args[0], None if at is None else args[at])]
    if event in _CHANGING_TWO:
        return _CHANGING_TWO[event], [_whole(args[0], args[2]), _whole(args[1], args[3])]
    return ("makes a link", [_whole(args[1], args[2])]) if event == "os.symlink" else None


def new_directory(event: str, args: tuple[object, ...], made: list[Made]) -> str | None:
    """Return the path of a directory that is about to be made and is not temporary; None if there is none."""
    if event != "os.mkdir" or _caller() == "tempfile":
        return None
    path = os.path.abspath(_whole(args[0], args[2]))
    return None if is_temporary(path, made) or _is_there(path) else path


def is_by_path(event: str, args: tuple[object, ...]) -> bool:
    """Return whether a directory is made at a path that the import has chosen itself."""
    return event == "os.mkdir" and args[2] in (-1, None) and _caller() != "tempfile"


def _is_there(path: str) -> bool:
    try:
        _lstat(path)
    except OSError:
        return False
    return True


def _whole(path: object, directory: object) -> str:
    """Return an absolute path, or one from the working directory; nothing if the descriptor leads nowhere."""
    text = path_lookups.text_of(path)
    if text.startswith("/") or directory in (-1, None):
        return text
    try:
        return f"{_readlink(f'/proc/self/fd/{directory}')}/{text}"
    except OSError:
        return ""


def _is_stream(path: str) -> bool:
    return path in _STREAMS or path.startswith(_STREAMS_IN) or "__pycache__" in path.split("/")


def is_temporary(path: str, made: list[Made]) -> bool:
    """Return whether a path lies in a temporary directory of an import, or in ``__pycache__``."""
    whole = os.path.abspath(path) + "/" if path else ""
    return "__pycache__" in path.split("/") or any(whole.startswith(one.path + "/") for one in made)


def may_be_there() -> bool:
    """Return whether the maker of a directory accepts an existing one: ``exist_ok`` of `os.makedirs` and `pathlib`."""
    frame = _acting()
    return frame is not None and bool(frame.f_locals.get("exist_ok"))


def _caller() -> str:
    """Return the module of the function that causes the event."""
    frame = _acting()
    return "" if frame is None else str(frame.f_globals.get("__name__"))


def _acting() -> FrameType | None:
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("_unsnarl"):
        frame = frame.f_back
    return frame


def take_back(directories: list[str]) -> None:
    """Remove the empty ones among the directories that imports have made."""
    for path in reversed(directories):
        try:
            os.rmdir(path)
        except OSError:
            pass  # not empty, or removed already
