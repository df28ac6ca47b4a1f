"""Staleness check: detects whether a loaded file has changed, by one system call a request.

The directories of all loaded files are watched with inotify. The kernel queues an event before the call that changes
a file returns, and forked processes share the queue. An empty queue therefore proves that no file was changed before
this request. On file systems whose changes make no event (network file systems), stamps are compared instead.

Things that do not work:

- watching files instead of directories: a rename over the file makes no event;
- modification times in whole seconds.

Invariant: in doubt the answer is "changed". Changes through a shared memory map make no event; modules are not
written in that way.
"""

from __future__ import annotations

import ctypes
import os
import time
from select import POLLIN, poll

from ..facts import Facts, is_as, kind_of, shortened, stamp_of

# linux/inotify.h
_ATTRIB, _CLOSE_WRITE, _MODIFY = 0x004, 0x008, 0x002
_MOVED, _CREATE, _DELETE = 0x0C0, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF = 0x400, 0x800
_ISDIR, _OVERFLOW, _IGNORED = 0x40000000, 0x4000, 0x8000
_MASK = _ATTRIB | _CLOSE_WRITE | _MODIFY | _MOVED | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK

# File systems on which every change makes an event here (/proc/filesystems). An unknown one may be changed
# elsewhere: a network's, or one that a virtual machine shares with its host.
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

# Endings of names of modules, and of what is enumerated with them.
_MODULES = (".py", ".pyc", ".so")
_ENUMERATED = (*_MODULES, ".zip", ".egg-link", ".dist-info", ".egg-info")
# Endings of names that each start of the interpreter reads.
_START = (".pth", "pyvenv.cfg")


# Nanoseconds within which two changes may get the same time; vfat's resolution is the coarsest.
_TICK_NS = 4_000_000_000


class Files:
    """Watches all files and directories of a set of facts.

    ``fd`` is readable while an event waits. It is -1 where inotify is unavailable; each check then compares the
    stamps of all files and directories, and the names in a directory whose stamp has changed.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        # A link counts as changed if its target changes.
        paths = {path for file in facts.files for path in (file, os.path.realpath(file))}
        self._names = {os.path.basename(path) for path in paths}
        self.fd = -1
        # What imports have examined in the caller's directory leads elsewhere in each, so it has no stamp in the facts.
        relative = {path for path in facts.directories if not path.startswith("/")}
        here = set(map(_placed, relative)) if facts.asks_cwd else set[str]()
        self._here = {path: kind_of(path) if os.path.isdir(path) else stamp_of(path) for path in here}
        # Names that imports have searched for: a new file of such a name may hide a loaded one, or end a failure.
        self._sought = frozenset(facts.sought)
        # In these, every name of a module or an installed package counts. The second set has their watches.
        self._enumerated, self._enumerated_watches = _places(facts.enumerated, facts.asks_cwd), set[int]()
        # In these, every name that appears or disappears counts, and nothing else.
        self._listed_fully, self._listed_watches = _places(facts.listed, facts.asks_cwd), set[int]()
        # Files in missing directories cannot be watched: each request queries them.
        lost = {path: stamp for path, stamp in facts.files.items() if not os.path.isdir(os.path.dirname(path))}
        self._asked = {**facts.asked, **lost}
        directories = {os.path.dirname(path) for path in paths} | set(facts.directories).difference(relative)
        directories |= self._listed_fully | self._enumerated
        # A watch is bound to an inode: a changed link, or another directory of the same name, makes no event.
        loose = {path for path in directories if os.path.dirname(path) not in directories or os.path.islink(path)}
        self._identities = {path: _identity(path) for path in loose}
        self._stamps: dict[str, tuple[int, int, int]] = {}
        self._listed: dict[str, frozenset[str] | None] = {}
        if _are_local(directories):
            self._watch(sorted(directories))
        if self.fd < 0:
            self._stamps = {path: _comparable(stamp_of(path)) for path in directories}
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
            if directory in self._listed_fully:
                self._listed_watches.add(number)
            if directory in self._enumerated:
                self._enumerated_watches.add(number)
        self.fd = fd

    def is_in_doubt(self) -> bool:
        """Return whether a file may have changed. Callable in a forked process: reads no event."""
        if self.fd < 0:
            return self.have_moved()
        question = poll()
        question.register(self.fd, POLLIN)
        return bool(question.poll(0)) or self.have_moved()

    def moved(self) -> str | None:
        """Return a path that leads elsewhere than before the imports though no event tells, or None."""
        asked = self._here | self._asked
        return next((path for path, stamp in asked.items() if not is_as(path, stamp)), None)

    def have_moved(self) -> bool:
        """Return whether a file has changed without an event."""
        if self.moved() is not None:
            return True
        if self.fd < 0:
            return self._facts.changed_file() is not None or any(map(self._differs, list(self._stamps)))
        return any(_identity(path) != was for path, was in self._identities.items())

    def _differs(self, path: str) -> bool:
        """Return whether a directory has other modules than before, or a listed one other names."""
        stamp = stamp_of(path)
        if stamp == self._stamps[path]:
            return False
        if path in self._listed_fully or stamp[2] != self._stamps[path][2]:
            return True
        listing = self._listing(path)
        if listing is None or listing != self._listed[path]:
            return True
        self._stamps[path] = _comparable(stamp)  # a file that is no module has appeared or disappeared
        return False

    def _listing(self, directory: str) -> frozenset[str] | None:
        """Return the importable names in a directory; None if it cannot be read."""
        try:
            with os.scandir(directory) as entries:
                return frozenset(
                    entry.name
                    for entry in entries
                    if self._is_importable(entry.name, _is_directory(entry), directory in self._enumerated)
                )
        except FileNotFoundError:
            return frozenset()
        except OSError:
            return None

    def reason(self) -> str | None:
        """Read the waiting events; return in words why the server is stale, or None."""
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
                return "a watched directory was removed"
            is_listed = number in self._listed_watches and _is_new_name(name, mask)
            if is_listed or self._is_loaded(name, mask, number in self._enumerated_watches):
                return f"{name} has changed"
        return None

    def _is_loaded(self, name: str, mask: int, is_enumerated: bool) -> bool:
        if mask & _IGNORED:
            return False
        if mask & _ATTRIB and not mask & (_CREATE | _MODIFY):
            # Permissions, link count or times have changed: only the contents count.
            return name in self._names and self._facts.changed_file() is not None
        is_directory = bool(mask & _ISDIR)
        if is_directory and not mask & (_CREATE | _MOVED | _DELETE):
            return False
        return self._is_importable(name, is_directory, is_enumerated)

    def _is_importable(self, name: str, is_directory: bool, is_enumerated: bool) -> bool:
        """Return whether a file of this name is loaded, or one that imports have searched for or enumerated."""
        stem, is_sought = name.partition(".")[0], name in self._sought
        if name in self._names or name.endswith(_START) or (is_sought and (is_directory or ".so" in name)):
            return True
        if is_directory:
            return is_enumerated and name != "__pycache__" and (stem.isidentifier() or name.endswith(_ENUMERATED))
        return name.endswith(_ENUMERATED if is_enumerated else _MODULES) and (is_enumerated or stem in self._sought)


def _places(paths: list[str], asks_cwd: bool) -> set[str]:
    """Return the absolute paths; relative ones in the working directory, if the imports asked for it."""
    fixed = {path for path in paths if path.startswith("/")}
    return fixed | ({_placed(path) for path in paths if path not in fixed} if asks_cwd else set[str]())


def _placed(path: str) -> str:
    """Return the absolute path of one in the working directory."""
    return shortened(os.path.join(os.getcwd(), path))


def _is_new_name(name: str, mask: int) -> bool:
    """Return whether a name has appeared or disappeared that a listing shows."""
    return bool(mask & (_CREATE | _MOVED | _DELETE)) and name != "__pycache__"


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a dangling link


def _comparable(stamp: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return a stamp for later comparison; one that never matches if another change could get the same time."""
    mtime, size, inode = stamp
    return stamp if abs(time.time_ns() - mtime) > _TICK_NS else (-1, size, inode)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _mounts() -> list[tuple[str, str]]:
    """Return mount points and types of file systems, as ``(path with a slash, type)``."""
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


def _are_local(paths: set[str]) -> bool:
    mounts = _mounts()
    return all(_is_local(path, mounts) for path in paths)


def _is_local(path: str, mounts: list[tuple[str, str]]) -> bool:
    """Return whether all changes of a directory make an event; of stacked mounts the last counts."""
    real = os.path.realpath(path) + "/"
    around = [mount for mount in mounts if real.startswith(mount[0])]
    if not around:
        return bool(mounts)  # in a chroot, the mount of its root is not listed
    return max(reversed(around), key=lambda mount: len(mount[0]))[1] in _LOCAL
