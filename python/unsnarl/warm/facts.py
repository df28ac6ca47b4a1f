"""What a learning run has found out about a command, kept between servers.

``COMMAND.rec`` is the client's part (crates/client/src/server/facts.rs describes
it); ``COMMAND.facts`` is the server's: lines of tab-separated words.

Invariant: both are written whole, to a temporary name, and renamed; a reader
sees an old record or a new one. Nothing in them is a value of the environment.
"""

from __future__ import annotations

import os
import stat
import time

from .renewals import Recipe, Renewal

# Seconds after which a plain verdict is looked into again: chance or the moment may have had a part in it.
LOOK_AGAIN_S = 3600
# Variables that a module's C code reads, which nobody sees.
_TERMINAL = ("TERM", "TERMINFO", "TERMINFO_DIRS", "COLUMNS", "LINES")
_READ_IN_C = {"_curses": _TERMINAL, "readline": (*_TERMINAL, "INPUTRC")}
# Sources of its author's own whose change ends a plain verdict.
MOST_EDITED = 64
# Stands in a stamp in the place of a time: only of which kind the file is, and which directory.
KIND = -1
_HEAD = "unsnarl-facts 3"


class Facts:
    """Hold a verdict and its grounds.

    ``modules`` are imported in this order; ``files`` map a path to
    ``(mtime_ns, size, inode)``, the command and its interpreter first; ``directories`` hold what else may decide
    what is loaded, a relative one as seen from the caller's; ``asked`` are other paths that imports have looked at,
    with a stamp or the kind of what is there, and ``listed`` directories of which they have read the names;
    ``renewals`` are the globals that each worker computes again; ``notes`` say in words what was
    found; a verdict is plain if ``refusals`` is not empty. ``verified`` names circumstances in which the
    same has been found; ``learner`` is the process that has learned, and is about to serve; ``fingerprint`` stands
    for the values of all globals that were compared; ``expires`` is
    the time in whole seconds, if any, after which a refusal is to be looked into again.
    """

    def __init__(self) -> None:
        self.command = ""
        self.modules: list[str] = []
        self.variables: list[str] = []
        self.asks_tty = False
        self.asks_cwd = False
        self.asks_umask = False
        self.files: dict[str, tuple[int, int, int]] = {}
        self.directories: list[str] = []
        self.asked: dict[str, tuple[int, int, int]] = {}
        self.listed: list[str] = []
        self.renewals: list[Renewal] = []
        self.notes: list[str] = []
        self.refusals: list[str] = []
        self.verified: list[str] = []
        self.learner = ""
        self.fingerprint = ""
        self.expires = 0

    def join(self, other: Facts) -> bool:
        """Take over what the imports ask for in other circumstances; say whether any of it was new."""
        before = client_text(self)
        self.variables = sorted({*self.variables, *other.variables})
        self.asks_tty |= other.asks_tty
        self.asks_cwd |= other.asks_cwd
        self.asks_umask |= other.asks_umask
        return client_text(self) != before

    def note_reads_in_c(self) -> None:
        """Add the variables that C code among the modules is known to read."""
        known = {name for module in _READ_IN_C.keys() & {*self.modules} for name in _READ_IN_C[module]}
        self.variables = sorted({*self.variables, *known})

    def imports_as(self, other: Facts) -> bool:
        """Say whether a server would import and watch the same."""
        mine, others = (
            (f.modules, f.renewals, f.directories, sorted(f.files), sorted(f.asked), f.listed) for f in (self, other)
        )
        return mine == others

    def changed_file(self) -> str | None:
        """Return a file that is not as it was, or None."""
        for path, stamp in self.files.items():
            if stamp_of(path) != stamp:
                return path
        return self.changed_answer()

    def changed_answer(self) -> str | None:
        """Return a path that imports have looked at where something else would be found, or None."""
        return next((path for path, stamp in self.asked.items() if not is_as(path, stamp)), None)


def stamp_of(path: str) -> tuple[int, int, int]:
    """Return modification time in ns, size in bytes, inode; zeroes if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return (0, 0, 0)
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def kind_of(path: str) -> tuple[int, int, int]:
    """Return of which kind a file is, in the place of a stamp, and which directory; with zeroes if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return (KIND, 0, 0)
    # A link may lead to another one of them by now.
    return (KIND, stat.S_IFMT(found.st_mode), found.st_ino if stat.S_ISDIR(found.st_mode) else 0)


def is_as(path: str, stamp: tuple[int, int, int]) -> bool:
    """Say whether a file, or there being none, is as a stamp or a kind says."""
    return (kind_of(path) if stamp[0] == KIND else stamp_of(path)) == stamp


def dump(facts: Facts) -> str:
    """Return the text of a .facts file."""
    rows: list[tuple[object, ...]] = [(_HEAD,)]
    rows += [("command", facts.command)]
    rows += [("module", name) for name in facts.modules]
    rows += [("variable", name) for name in facts.variables]
    rows += [("tty",)] if facts.asks_tty else []
    rows += [("cwd",)] if facts.asks_cwd else []
    rows += [("umask",)] if facts.asks_umask else []
    rows += [("directory", path) for path in facts.directories]
    rows += [("listing", path) for path in facts.listed]
    rows += [("clock", one.module, one.name, one.recipe) for one in facts.renewals]
    rows += [("note", note) for note in facts.notes]
    rows += [("refusal", why) for why in facts.refusals]
    rows += [("verified", which) for which in facts.verified]
    rows += [("learner", facts.learner)] if facts.learner else []
    rows += [("fingerprint", facts.fingerprint)] if facts.fingerprint else []
    rows += [("expires", facts.expires)] if facts.expires else []
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
        "directory": facts.directories,
        "listing": facts.listed,
        "note": facts.notes,
        "refusal": facts.refusals,
        "verified": facts.verified,
    }
    for line in lines[1:-1]:
        kind, _, rest = line.partition("\t")
        if kind in lists:
            lists[kind].append(rest)
        elif kind in ("command", "learner", "fingerprint", "expires"):
            setattr(facts, kind, type(getattr(facts, kind))(rest))
        elif kind in ("tty", "cwd", "umask"):
            setattr(facts, f"asks_{kind}", True)
        elif kind == "clock":
            module, name, recipe = rest.split("\t")
            facts.renewals.append(Renewal(module, name, Recipe.parse(recipe)))
        elif kind in ("file", "asked"):
            mtime, size, inode, path = rest.split("\t", 3)
            (facts.files if kind == "file" else facts.asked)[path] = (int(mtime), int(size), int(inode))
        else:
            raise ValueError(f"unknown line {kind!r}")
    return facts


def client_text(facts: Facts) -> str:
    """Return the text of the client's .rec file."""
    if facts.refusals:
        # Few, for the client looks at them on every call: what an installation changes, and its author.
        paths = [path for path in facts.directories if path.endswith("-packages")] + list(facts.files)[:2]
        paths += [path for path in list(facts.files)[2:] if _is_edited(path)][:MOST_EDITED]
        stamps = "".join(f"stamp {s[0]} {s[1]} {path}\n" for path in paths if (s := stamp_of(path))[2])
        expiry = f"until {facts.expires}\n" if facts.expires else ""
        return "unsnarl-record 2 plain\n" + expiry + stamps
    names = "".join(f"var {name}\n" for name in facts.variables)
    asked = [("tty", facts.asks_tty), ("cwd", facts.asks_cwd), ("umask", facts.asks_umask)]
    return "unsnarl-record 2 warm\n" + names + "".join(f"{what}\n" for what, is_asked in asked if is_asked)


def rule_out(stem: str, facts: Facts, why: str) -> None:
    """Have one key's calls run plainly for a time, or until something is changed; ``stem`` is the key's."""
    refused = Facts()
    refused.refusals, refused.expires = [why], int(time.time()) + LOOK_AGAIN_S
    refused.files, refused.directories = facts.files, facts.directories
    write(f"{stem}.rec", client_text(refused))


def _is_edited(path: str) -> bool:
    """Say whether a file is of the user's own making: neither installed nor the interpreter's."""
    return path.endswith(".py") and "-packages/" not in path and "/python3." not in path


def load(path: str) -> Facts | None:
    """Read a .facts file; None if there is none that can be read."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return parse(file.read())
    except (OSError, ValueError):
        return None


def mark(stem: str) -> None:
    """Note that a record is in use: one that nobody uses is swept (sweep.py); ``stem`` is its path without suffix."""
    try:
        os.utime(stem + ".facts")
    except OSError:
        pass  # it is gone already


def store(facts: Facts, stem: str) -> None:
    """Write both files of a record; ``stem`` is their path without suffix."""
    write(stem + ".facts", dump(facts))
    write(stem + ".rec", client_text(facts))


def write(path: str, text: str) -> None:
    """Write a file whole, or not at all."""
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
    os.rename(temporary, path)
