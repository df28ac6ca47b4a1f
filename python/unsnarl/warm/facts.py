"""The facts file of a command: what a learning run has found, stored for servers and for the client.

``COMMAND.rec`` is the client's part (crates/client/src/server/facts.rs describes it); ``COMMAND.facts`` is the
server's: lines of tab-separated words.

Invariant: both files are written under a temporary name and renamed, so a reader sees an old record or a new one.
Neither holds the value of a variable.
"""

from __future__ import annotations

import os
import stat
import time

from .dataclass import dataclass
from .renewals import DIRECTORY, Recipe, Renewal

# Seconds after which a plain verdict is checked again: it may have been due to chance or to the moment.
LOOK_AGAIN_S = 3600
# Variables that a module's C code reads, which no recorder notices.
_TERMINAL = ("TERM", "TERMINFO", "TERMINFO_DIRS", "COLUMNS", "LINES")
_READ_IN_C = {"_curses": _TERMINAL, "readline": (*_TERMINAL, "INPUTRC")}
# Most source files outside site-packages whose change ends a plain verdict.
MOST_EDITED = 64
# Replaces the time in a stamp that holds only the kind of a file and, of a directory, its inode.
KIND = -1
_HEAD = "unsnarl-facts 9"
# Before a learning run watches it.
_lstat = os.lstat
# Suffix of the values that a quick learning run has found, for the server to compare its own with.
VALUES = ".values"


@dataclass(frozen=True)
class Kept:
    """What is known of a variable that imports read and only keep, if anything."""

    reads: int
    """How often it was read, at most."""
    was_set: bool
    """Whether it had a value then. Otherwise nothing is known of what the imports do with one."""


class Facts:
    """A verdict, warm or plain, and its grounds.

    | field | content |
    |---|---|
    | ``modules`` | what a server imports, in this order: first what the learning run has asked for |
    | ``origins`` | the file of each of them, or the directories of a package without one |
    | ``variables`` | variables whose value decides something |
    | ``kept`` | other variables that were read: how often, and whether each was set when that was found out |
    | ``prefixes`` | beginnings of names: a loaded C library, or a walk of imports, reads all such variables |
    | ``walks`` | those of them that imports have walked through the environment for: they see the order, too |
    | ``user_site`` | the user's own packages, as a path below the home directory; empty if it is not searched |
    | ``files`` | path to ``(mtime_ns, size, inode)``; the command and its interpreter come first |
    | ``directories`` | other places that decide what is loaded; relative: what imports examined in the caller's |
    | ``asked`` | other paths that imports have examined, with the stamp or the kind of the file there |
    | ``listed`` | directories whose names imports have read; a relative path, likewise |
    | ``sought`` | names of modules and libraries that imports have searched for, found or not |
    | ``enumerated`` | directories in which they have enumerated modules or installed packages |
    | ``renewals`` | globals that each worker computes again |
    | ``notes`` | findings in words |
    | ``refusals`` | reasons for a plain verdict; empty if the verdict is warm |
    | ``doubtful`` | variables that count as deciding something, but may be kept only: a digest of the value they had |
    | ``seed`` | the hash seed of its learning runs, by which the order in sets is comparable |
    | ``is_unproven`` | one learning run was made; the next server compares its values with ``COMMAND.values`` |
    | ``late`` | variables, beginnings and ``.`` that imports have read which code of the command may precede |
    | ``changed_size`` | size of ``COMMAND.changed`` up to which it was considered (``changed.py``) |
    | ``verified`` | names of circumstances in which a learning run has found the same |
    | ``learner`` | the process that has learned these facts and is about to serve |
    | ``fingerprint`` | a digest of all globals that were compared |
    | ``expires`` | seconds since the epoch after which a refusal is checked again; 0 for never |
    """

    def __init__(self) -> None:
        self.command = self.learner = self.fingerprint = ""
        self.modules: list[str] = []
        self.origins: dict[str, str] = {}
        self.variables: list[str] = []
        self.kept: dict[str, Kept] = {}
        self.prefixes: list[str] = []
        self.walks: list[str] = []
        self.user_site = ""
        self.asks_tty = self.asks_size = False
        self.asks_sum = False
        self.asks_cwd = self.asks_umask = self.asks_signals = False
        self.files: dict[str, tuple[int, int, int]] = {}
        self.directories: list[str] = []
        self.asked: dict[str, tuple[int, int, int]] = {}
        self.listed: list[str] = []
        self.sought: list[str] = []
        self.enumerated: list[str] = []
        self.renewals: list[Renewal] = []
        self.notes: list[str] = []
        self.refusals: list[str] = []
        self.doubtful: dict[str, str] = {}
        self.seed, self.is_unproven = 1, False
        self.late: list[str] = []
        self.verified: list[str] = []
        self.expires = self.changed_size = 0

    def join(self, other: Facts) -> bool:
        """Add what the imports read in other circumstances; return whether any of it was new."""
        before = client_text(self)
        self.variables = sorted({*self.variables, *other.variables})
        for name, one in other.kept.items():
            old = self.kept.get(name, Kept(0, False))
            self.kept[name] = Kept(max(old.reads, one.reads), old.was_set or one.was_set)
        for name in self.kept.keys() & {*self.variables}:
            del self.kept[name]
        self.prefixes = sorted({*self.prefixes, *other.prefixes})
        self.walks = sorted({*self.walks, *other.walks})
        self.late = sorted({*self.late, *other.late})
        self.user_site = self.user_site or other.user_site
        self.asks_tty |= other.asks_tty
        self.asks_size |= other.asks_size
        self.asks_sum |= other.asks_sum
        self.asks_cwd |= other.asks_cwd
        if self.asks_cwd:
            self.kept.pop(DIRECTORY, None)
        self.asks_umask |= other.asks_umask
        self.asks_signals |= other.asks_signals
        return client_text(self) != before

    def settle(self, other: Facts) -> None:
        """Forget the doubts that another run has ended: it tells whether these variables decide something."""
        ended = self.doubtful.keys() - other.doubtful.keys()
        self.variables = [name for name in self.variables if name not in ended]
        self.asks_cwd &= DIRECTORY not in ended

    def note_reads_in_c(self) -> None:
        """Add the variables that C code among the modules is known to read."""
        known = {name for module in _READ_IN_C.keys() & {*self.modules} for name in _READ_IN_C[module]}
        self.variables = sorted({*self.variables, *known})

    def imports_as(self, other: Facts) -> bool:
        """Return whether a server would import and watch the same."""
        mine, others = (
            (
                f.modules,
                set(f.renewals),
                f.directories,
                sorted(f.files),
                sorted(f.asked),
                f.listed,
                f.sought,
                f.enumerated,
                f.asks_signals,
            )
            for f in (self, other)
        )
        return mine == others

    def changed_file(self) -> str | None:
        """Return a file that has changed, or None."""
        for path, stamp in self.files.items():
            if stamp_of(path) != stamp:
                return path
        return self.changed_answer()

    def changed_answer(self) -> str | None:
        """Return a path that imports have examined and that leads to something else now, or None."""
        return next((path for path, stamp in self.asked.items() if not is_as(path, stamp)), None)


def stamp_of(path: str) -> tuple[int, int, int]:
    """Return modification time in ns, size in bytes and inode; zeroes if there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def kind_of(path: str) -> tuple[int, int, int]:
    """Return a stamp of the kind of a file and, of a directory, its inode; zeroes if there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return (KIND, 0, 0)
    # The inode of a directory: a link may lead to another one by now.
    return (KIND, stat.S_IFMT(found.st_mode), found.st_ino if stat.S_ISDIR(found.st_mode) else 0)


def shortened(path: str) -> str:
    """Return a path without ``.`` and doubled slashes, and without ``..`` where that follows a directory.

    After a link ``..`` leads to where the link leads, which may change; and after what is not there, nowhere.
    """
    if ".." not in path:
        return os.path.normpath(path)
    start, parts = "/" if path.startswith("/") else "", list[str]()
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != ".." and _is_directory(start + "/".join(parts)):
            parts.pop()
        elif part not in ("", ".") and (part != ".." or parts or not start):
            parts.append(part)
    return start + "/".join(parts) or "."


def _is_directory(path: str) -> bool:
    """Return whether there is a directory, and not a link to one."""
    try:
        return stat.S_ISDIR(_lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def is_as(path: str, stamp: tuple[int, int, int]) -> bool:
    """Return whether a path still fits its stamp, which may stand for a missing file or for a kind only."""
    return (kind_of(path) if stamp[0] == KIND else stamp_of(path)) == stamp


def dump(facts: Facts) -> str:
    """Return the text of a .facts file."""
    rows: list[tuple[object, ...]] = [(_HEAD,)]
    rows += [("command", facts.command)]
    rows += [("module", name) for name in facts.modules] + [
        ("origin", one, name) for name, one in facts.origins.items()
    ]
    rows += [("variable", name) for name in facts.variables]
    rows += [("kept", one.reads, int(one.was_set), name) for name, one in sorted(facts.kept.items())]
    rows += [("prefix", text) for text in facts.prefixes]
    rows += [("walk", text) for text in facts.walks]
    rows += [("site", facts.user_site)] if facts.user_site else []
    rows += [(name,) for name, field in _FLAGS.items() if getattr(facts, field)]
    rows += [("directory", path) for path in facts.directories]
    rows += [("listing", path) for path in facts.listed]
    rows += [("sought", name) for name in facts.sought]
    rows += [("enumerated", path) for path in facts.enumerated]
    rows += [("clock", one.module, one.name, one.recipe) for one in facts.renewals]
    rows += [("note", note) for note in facts.notes]
    rows += [("refusal", why) for why in facts.refusals]
    rows += [("doubtful", digest, name) for name, digest in sorted(facts.doubtful.items())]
    rows += [("seed", facts.seed)] if facts.seed != 1 else []
    rows += [("late", name) for name in facts.late]
    rows += [("verified", which) for which in facts.verified]
    named = {name: getattr(facts, name) for name in ("learner", "fingerprint", "expires", "changed_size")}
    rows += [(name, value) for name, value in named.items() if value]
    rows += [("file", *stamp, path) for path, stamp in facts.files.items()]
    rows += [("asked", *stamp, path) for path, stamp in facts.asked.items()]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


def parse(text: str) -> Facts:
    """Read the text of a .facts file. Raises ValueError if it is not one."""
    lines = text.split("\n")
    if lines[0] != _HEAD or lines[-1] != "":
        raise ValueError("not a facts file of this version")
    facts = Facts()
    lists = {
        "module": facts.modules,
        "variable": facts.variables,
        "prefix": facts.prefixes,
        "walk": facts.walks,
        "directory": facts.directories,
        "listing": facts.listed,
        "sought": facts.sought,
        "enumerated": facts.enumerated,
        "note": facts.notes,
        "refusal": facts.refusals,
        "late": facts.late,
        "verified": facts.verified,
    }
    for line in lines[1:-1]:
        kind, _, rest = line.partition("\t")
        if kind in lists:
            lists[kind].append(rest)
        else:
            _parse_row(facts, kind, rest)
    return facts


_FLAGS = {
    "tty": "asks_tty", "size": "asks_size", "sum": "asks_sum", "cwd": "asks_cwd", "umask": "asks_umask",
    "signals": "asks_signals", "unproven": "is_unproven",
}  # fmt: skip


def _parse_row(facts: Facts, kind: str, rest: str) -> None:
    """Read a line that is no item of a list. Raises ValueError."""
    if kind in ("command", "learner", "fingerprint", "expires", "seed", "changed_size"):
        setattr(facts, kind, type(getattr(facts, kind))(rest))
    elif kind == "kept":
        reads, was_set, name = rest.split("\t", 2)
        facts.kept[name] = Kept(int(reads), was_set == "1")
    elif kind in ("doubtful", "origin"):
        text, name = rest.split("\t", 1)
        (facts.doubtful if kind == "doubtful" else facts.origins)[name] = text
    elif kind == "site":
        facts.user_site = rest
    elif kind in _FLAGS:
        setattr(facts, _FLAGS[kind], True)
    elif kind == "clock":
        module, name, recipe = rest.split("\t")
        facts.renewals.append(Renewal(module, name, Recipe.parse(recipe)))
    elif kind in ("file", "asked"):
        mtime, size, inode, path = rest.split("\t", 3)
        (facts.files if kind == "file" else facts.asked)[path] = (int(mtime), int(size), int(inode))
    else:
        raise ValueError(f"unknown line {kind!r}")


def client_text(facts: Facts) -> str:
    """Return the text of the client's .rec file."""
    if facts.refusals:
        # Few, since the client checks them in every call: what an installation or the author changes.
        paths = [path for path in facts.directories if path.endswith("-packages")] + list(facts.files)[:2]
        paths += [path for path in list(facts.files)[2:] if _is_edited(path)][:MOST_EDITED]
        stamps = "".join(f"stamp {s[0]} {s[1]} {path}\n" for path in paths if (s := stamp_of(path))[2])
        expiry = f"until {facts.expires}\n" if facts.expires else ""
        return "unsnarl-record 4 plain\n" + expiry + stamps
    names = "".join(f"var {name}\n" for name in facts.variables)
    names += "".join(f"kept {name}\n" for name in sorted(facts.kept) if name != DIRECTORY)
    names += "".join(f"prefix {text}\n" for text in facts.prefixes)
    names += "".join(f"walk {text}\n" for text in facts.walks)
    names += f"site {facts.user_site}\n" if facts.user_site else ""
    asked = [("tty", facts.asks_tty), ("size", facts.asks_size), ("sum", facts.asks_sum)]
    asked += [("cwd", facts.asks_cwd), ("umask", facts.asks_umask)]
    return "unsnarl-record 4 warm\n" + names + "".join(f"{what}\n" for what, is_asked in asked if is_asked)


def rule_out(stem: str, facts: Facts, why: str) -> None:
    """Make the calls of one key run plainly for a time, or until a file changes; ``stem`` is the key's."""
    refused = Facts()
    refused.refusals, refused.expires = [why], int(time.time()) + LOOK_AGAIN_S
    refused.files, refused.directories = facts.files, facts.directories
    refuse(stem, refused)


def refuse(stem: str, refused: Facts) -> None:
    """Make the calls of one key run plainly while these facts hold; ``unsnarl warm why`` reads the reasons."""
    write(f"{stem}.why", "\n".join(refused.refusals))
    write(f"{stem}.rec", client_text(refused))


def _is_edited(path: str) -> bool:
    """Return whether a file is the user's own source: neither installed nor the interpreter's."""
    return path.endswith(".py") and "-packages/" not in path and "/python3." not in path


def load(path: str) -> Facts | None:
    """Read a .facts file; None if it is missing or unreadable."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return parse(file.read())
    except (OSError, ValueError):
        return None


def mark(stem: str) -> None:
    """Update the time of a record in use: unused ones are swept (sweep.py). ``stem`` is its path without suffix."""
    try:
        os.utime(stem + ".facts")
    except OSError:
        pass  # removed meanwhile


def store(facts: Facts, stem: str) -> None:
    """Write both files of a record; ``stem`` is their path without suffix."""
    write(stem + ".facts", dump(facts))
    write(stem + ".rec", client_text(facts))


def write(path: str, text: str) -> None:
    """Write a file under a temporary name, then rename it."""
    temporary = f"{path}.{os.getpid()}"
    try:
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.rename(temporary, path)
    except OSError:  # the disk is full
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise
