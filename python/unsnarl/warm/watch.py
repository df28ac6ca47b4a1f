"""Notice that a loaded file has changed, without a stat per file and request.

The directories of all loaded files are watched with inotify. The kernel queues
an event before the call that changes a file returns, and the queue is shared
with the forked processes: so "is the queue empty?" is an exact answer to "has
anything been changed before this request?", for one system call.

Things that do not work: watching files instead of directories (a rename over
the file goes unseen); whole-second modification times.

Invariant: in doubt it says changed. Changes through a shared memory map make no
event; nobody writes modules that way.
"""

from __future__ import annotations

import ctypes
import os
from select import POLLIN, poll

from .facts import Facts

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


class Files:
    """Watch everything a set of facts was learned from.

    ``fd`` is readable while an event waits; -1 where inotify is not to be had,
    and every question is then answered by comparing all stamps.
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
        directories = {os.path.dirname(path) for path in paths} | set(facts.directories).difference(relative)
        # What is watched is an inode: a link that leads elsewhere, or another directory of the name, makes no event.
        self._places = {path: _identity(path) for path in directories if os.path.dirname(path) not in directories}
        mounts = _mounts()
        if not all(_is_local(path, mounts) for path in self._places):
            return
        self._watch(sorted(directories | self._here))

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
            return self._facts.changed_file() is not None
        return any(_identity(path) != was for path, was in self._places.items())

    def reason(self) -> str | None:
        """Read the waiting events and say what makes the server stale, or None."""
        found: str | None = None
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
            if number in self._here_watches or self._is_loaded(name, mask):
                return f"{name} has changed"
        return None

    def _is_loaded(self, name: str, mask: int) -> bool:
        if name == "__pycache__" or mask & _IGNORED:
            return False
        if mask & _ATTRIB and not mask & (_CREATE | _MODIFY):
            # Permissions, link count or times: only a change of contents counts.
            return name in self._names and self._facts.changed_file() is not None
        if mask & _ISDIR:
            is_package = name.partition(".")[0].isidentifier() or name.endswith(_IMPORTABLE)
            return bool(mask & (_CREATE | _MOVED | _DELETE)) and is_package
        return name in self._names or name.endswith(_IMPORTABLE)


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
