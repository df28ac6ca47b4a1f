"""Notice that a loaded file has changed, without a stat per file and request.

The directories of all loaded files are watched with inotify. The kernel queues
an event before the call that changes a file returns, and the queue is shared
with the forked processes: so "is the queue empty?" is an exact answer to "has
anything been changed before this request?", for one system call.

Where no event can be trusted (network file systems), stamps are compared instead.

Things that do not work: watching files instead of directories (a rename over
the file goes unseen); whole-second modification times.

Invariant: in doubt it says changed. Changes through a shared memory map make no
event; nobody writes modules that way.
"""

from __future__ import annotations

import ctypes
import os
import time
from select import POLLIN, poll

from ..facts import Facts, is_as, stamp_of

# linux/inotify.h
_ATTRIB, _CLOSE_WRITE, _MODIFY = 0x004, 0x008, 0x002
_MOVED, _CREATE, _DELETE = 0x0C0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_ISDIR, _OVERFLOW, _IGNORED = 0x40000000, 0x4000, 0x8000
_MASK = _ATTRIB | _CLOSE_WRITE | _MODIFY | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK

# File systems that nobody changes without an event here (/proc/filesystems). What is not known may be one that
# others change: a network's, or one that a virtual machine shares with its host.
_LOCAL = frozenset(
    [
        "aufs",
        "bcachefs",
        "btrfs",
        "cramfs",
        "devtmpfs",
        "erofs",
        "exfat",
        "ext2",
        "ext3",
        "ext4",
        "f2fs",
        "fuse.fuse-overlayfs",
        "hfsplus",
        "iso9660",
        "jfs",
        "nilfs2",
        "ntfs3",
        "overlay",
        "ramfs",
        "reiserfs",
        "rootfs",
        "squashfs",
        "tmpfs",
        "ubifs",
        "udf",
        "vfat",
        "xfs",
        "zfs",
    ]
)

# What an import system may look for: a new one may hide what was loaded.
_IMPORTABLE = (".py", ".pyc", ".so", ".pth", ".egg-link", ".dist-info", ".egg-info", ".zip", "pyvenv.cfg")


# Nanoseconds within which a file system may give two changes one time: vfat's are the coarsest.
_TICK_NS = 4_000_000_000


class Files:
    """Watch everything a set of facts was learned from.

    ``fd`` is readable while an event waits; -1 where inotify is not to be had,
    and every question is then answered by comparing the stamps of all files and
    directories, and what is in a directory that has another.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        # A link to a file is changed where it leads to, as well.
        paths = {path for file in facts.files for path in (file, os.path.realpath(file))}
        self._names = {os.path.basename(path) for path in paths}
        self.fd = -1
        # Imports that ask for the working directory may look at anything in it, and in what they name beneath it.
        relative = {path for path in facts.directories if not path.startswith("/")}
        self._here = {os.path.abspath(path) for path in relative | {"."}} if facts.asks_cwd else set[str]()
        self._here_watches: set[int] = set()
        # Of these any name counts that comes or goes, but only that.
        self._listed_fully, self._listed_watches = set(facts.listed), set[int]()
        # What is looked for where nothing can be watched is asked for each time, as what is not worth a watch.
        lost = {path: stamp for path, stamp in facts.files.items() if not os.path.isdir(os.path.dirname(path))}
        self._asked = {**facts.asked, **lost}
        directories = {os.path.dirname(path) for path in paths} | set(facts.directories).difference(relative)
        directories |= self._listed_fully
        # What is watched is an inode: a link that leads elsewhere, or another directory of the name, makes no event.
        self._places = {path: _identity(path) for path in directories if os.path.dirname(path) not in directories}
        self._stamps: dict[str, tuple[int, int, int]] = {}
        self._listed: dict[str, frozenset[str] | None] = {}
        mounts = _mounts()
        if all(_is_local(path, mounts) for path in directories | self._here):
            self._watch(sorted(directories | self._here))
        if self.fd < 0:
            self._stamps = {path: stamp_of(path) for path in self._here}
            self._stamps |= {path: _settled(stamp_of(path)) for path in directories - self._here}
            self._listed = {path: self._listing(path) for path in directories}

    def _watch(self, directories: list[str]) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.inotify_init1(_FLAGS)
        if fd < 0:
            return
        for directory in directories:
            if not os.path.isdir(directory):
                continue
            number = libc.inotify_add_watch(fd, os.fsencode(directory), _MASK)
            if number < 0:
                os.close(fd)
                return
            if directory in self._here:
                self._here_watches.add(number)
            if directory in self._listed_fully:
                self._listed_watches.add(number)
        self.fd = fd

    def is_in_doubt(self) -> bool:
        """Say whether anything may have changed. Safe in a forked process: reads no event."""
        if self.fd < 0:
            return self.have_moved()
        question = poll()
        question.register(self.fd, POLLIN)
        return bool(question.poll(0)) or self.have_moved()

    def have_moved(self) -> bool:
        """Say whether something has changed of which no event tells."""
        if self.fd < 0:
            return self._facts.changed_file() is not None or any(map(self._differs, list(self._stamps)))
        if any(_identity(path) != was for path, was in self._places.items()):
            return True
        return not all(is_as(path, stamp) for path, stamp in self._asked.items())

    def _differs(self, path: str) -> bool:
        """Say whether a directory has other modules in it, or what was looked at in the caller's is another."""
        stamp = stamp_of(path)
        if stamp == self._stamps[path]:
            return False
        if path in self._here or path in self._listed_fully or stamp[2] != self._stamps[path][2]:
            return True
        listing = self._listing(path)
        if listing is None or listing != self._listed[path]:
            return True
        self._stamps[path] = _settled(stamp)  # something else has come or gone
        return False

    def _listing(self, directory: str) -> frozenset[str] | None:
        """Return what may be imported from a directory; None where it cannot be read."""
        try:
            with os.scandir(directory) as entries:
                return frozenset(
                    entry.name for entry in entries if self._is_importable(entry.name, _is_directory(entry))
                )
        except FileNotFoundError:
            return frozenset()
        except OSError:
            return None

    def reason(self) -> str | None:
        """Read the waiting events and say what makes the server stale, or None."""
        found: str | None = None
        if self.fd < 0:
            return "a directory has changed" if self.have_moved() else None
        while True:
            try:
                data = os.read(self.fd, 65536)
            except BlockingIOError:
                return found
            found = found or self._judge(data)

    def _judge(self, data: bytes) -> str | None:
        at = 0
        while at + 16 <= len(data):
            mask = int.from_bytes(data[at + 4 : at + 8], "little")
            length = int.from_bytes(data[at + 12 : at + 16], "little")
            name = os.fsdecode(data[at + 16 : at + 16 + length].rstrip(b"\0"))
            number = int.from_bytes(data[at : at + 4], "little", signed=True)
            at += 16 + length
            if mask & (_OVERFLOW | _DELETE_SELF | _MOVE_SELF):
                return "a watched directory is gone"
            is_listed = number in self._listed_watches and _is_new_name(name, mask)
            if number in self._here_watches or is_listed or self._is_loaded(name, mask):
                return f"{name} has changed"
        return None

    def _is_loaded(self, name: str, mask: int) -> bool:
        if mask & _IGNORED:
            return False
        if mask & _ATTRIB and not mask & (_CREATE | _MODIFY):
            # Permissions, link count or times: only a change of contents counts.
            return name in self._names and self._facts.changed_file() is not None
        is_directory = bool(mask & _ISDIR)
        if is_directory and not mask & (_CREATE | _MOVED | _DELETE):
            return False
        return self._is_importable(name, is_directory)

    def _is_importable(self, name: str, is_directory: bool) -> bool:
        """Say whether a new one of this name may hide what was loaded, or is loaded itself."""
        if is_directory:
            return name != "__pycache__" and (name.partition(".")[0].isidentifier() or name.endswith(_IMPORTABLE))
        return name in self._names or name.endswith(_IMPORTABLE)


def _is_new_name(name: str, mask: int) -> bool:
    """Say whether a name has come or gone that a listing would show."""
    return bool(mask & (_CREATE | _MOVED | _DELETE)) and name != "__pycache__"


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a link that leads nowhere today


def _settled(stamp: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a stamp to compare with: of a directory that may change again at the same time, one that no other is."""
    mtime, size, inode = stamp
    return stamp if abs(time.time_ns() - mtime) > _TICK_NS else (-1, size, inode)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _mounts() -> list[tuple[str, str]]:
    """Return where file systems are mounted, and of which kind, as ``(path with a slash, kind)``."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.partition(" - ") for line in file]
    except OSError:
        return []
    return [(_unescaped(before.split()[4]).rstrip("/") + "/", after.split()[0]) for before, _, after in lines]


def _unescaped(path: str) -> str:
    """Undo seq_path_root(), which writes blanks and backslashes in octal."""
    for escaped, plain in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        path = path.replace(escaped, plain)
    return path


def _is_local(path: str, mounts: list[tuple[str, str]]) -> bool:
    """Say whether nobody changes a directory without an event here; of mounts upon each other the last counts."""
    real = os.path.realpath(path) + "/"
    around = [mount for mount in mounts if real.startswith(mount[0])]
    if not around:
        return bool(mounts)  # in a chroot: the mount that its root lies in is not listed
    return max(reversed(around), key=lambda mount: len(mount[0]))[1] in _LOCAL
