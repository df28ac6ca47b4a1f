"""The watch of a learning run: collects what the recorders, and the audit hook, observe of imports.

Each event is noted with the module that is being imported. Outside of imports the watch is off, and notes nothing.

Invariant: an event that must not happen twice is prevented before it happens (:meth:`Watch.forbid`).
"""

from __future__ import annotations

import os

from .. import facts as facts_of
from ..importing import bodies, temporary
from ..renewals import DIRECTORY, ENVIRONMENT_COPY, WORKING_DIRECTORY, Renewal
from . import changes_before, effects, environment_copies, environment_walk, kept, path_lookups, recorders

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..made_file import MadeFile

# Variables that differ from call to call. A module that reads one of them cannot be imported ahead: a server for
# each value would never be used again. (PWD has as many values as there are directories, which may be in a key, too.)
VOLATILE = frozenset(
    [
        "OLDPWD", "_", "WINDOWID", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY",
        "TMUX_PANE", "STY", "XDG_SESSION_ID", "INVOCATION_ID", "JOURNAL_STREAM",
    ]
)  # fmt: skip
# Events with a line in `unsnarl warm why`.
NOTED = {
    # The network namespace is part of the key; a socket that stays open is found later.
    "socket.bind": "binds a socket",
}


# Most relative paths that are watched; imports that examine more walk through the directory.
MOST_RELATIVE = 100
# Modules that keep the working directory in a global and do nothing else with it.
KEPT_DIRECTORY = {"multiprocessing.process": Renewal("multiprocessing.process", "ORIGINAL_DIR", WORKING_DIRECTORY)}

# The name of a renewal that stands for all copies which a module makes.
COPIES = "os.environ.copy()"


class Watch:
    """Collects events, each with the module that was being imported.

    ``fatal`` holds ``(wanted, reason)``: a module that must not be imported ahead, empty for all of them, and why.
    """

    def __init__(
        self,
        made: temporary.Directories,
        made_file: MadeFile,
        others: kept.Others | None = None,
        *,
        may_keep_directory: bool = False,
    ) -> None:
        self.current = ""
        self.may_keep_directory = may_keep_directory
        # In place of the real values of what the imports read, in a run that looks for kept ones.
        self.others = others
        # For each loaded module, the requested one whose import has loaded it.
        self.owners: dict[str, str] = {}
        self.fatal: list[tuple[str, str]] = []
        self.notes: list[str] = []
        # How often each variable was read, those that had a value, and those that an import has set or removed.
        self.reads: dict[str, int] = {}
        self.set_variables: set[str] = set()
        self.variables: set[str] = set()
        self.walks = environment_walk.Walks(VOLATILE)
        self.copies = environment_copies.Copies()
        self.opened: set[str] = set()
        self.relative: set[str] = set()
        self.relative_listed: set[str] = set()
        self.seen = path_lookups.Seen()
        # Names of modules and libraries that were searched for.
        self.sought: set[str] = set()
        self.asks_tty = self.asks_size = self.asks_cwd = self.asks_umask = self.asks_signals = False
        self.renewals: list[Renewal] = []
        self.temporary = made
        # Permanent directories that imports have made: by which module, and whether it accepts an existing one.
        self.directories: list[tuple[str, str, bool]] = []
        # Where it is noted what they make.
        self.made_file = made_file
        self.is_on = False
        self.before = changes_before.Before(self.walks)
        # Requested modules that come out otherwise in a worker than in a plain run, so that they rule a server out.
        self.unfit: set[str] = set()

    def fail(self, reason: str) -> None:
        """Note that the current module must not be imported ahead."""
        if self.is_on:
            self.fatal.append((self.current, f"{bodies.importing()} {reason} while it is imported"))

    def rule_out(self, reason: str) -> None:
        """Note the same of a module that is not left to the runs either: in a worker it would come out otherwise."""
        self.unfit.update([self.current] if self.is_on else ())
        self.fail(reason)

    def forbid(self, reason: str) -> None:
        """Note the same, and prevent what is about to happen. Raises :class:`effects.VetoedError`."""
        if self.is_on:
            self.fail(reason)
            raise effects.VetoedError(reason)

    def forbid_import(self, name: str) -> None:
        """Prevent an import of a module that is left to the runs. Raises :class:`effects.VetoedError`."""
        self.forbid(f"imports {name}, which is left to the runs,")

    def note(self, text: str) -> None:
        """Note an event for `unsnarl warm why`."""
        if self.is_on:
            self.notes.append(f"{bodies.importing()} {text} while it is imported")

    def read_variable(self, name: str) -> None:
        """Note that a variable of the environment was read."""
        if not self.is_on:
            return
        if name in VOLATILE:
            self.fail(f"reads ${name}, which differs from call to call,")
            return
        if self.before.note_read(name, self.current):
            self.fail(f"reads ${name}, which the command may set before,")
        self.reads[name] = self.reads.get(name, 0) + 1

    def walk(self, reason: str) -> environment_walk.Walk:
        """Note that an import walks through the environment; ``reason`` counts if it reads all of it."""
        return self.walks.begin(self.later(reason), self._source, self.current)

    def later(self, reason: str) -> Callable[[], None]:
        """Return a function that notes, even after the imports, that this module must not be imported ahead."""
        why = (self.current, f"{bodies.importing()} {reason} while it is imported")
        return lambda: self.fatal.append(why)

    def copy(self) -> None:
        """Note that a module keeps a copy of the environment, which each worker fills again."""
        one = Renewal(bodies.importing(), COPIES, ENVIRONMENT_COPY)
        if one not in self.renewals:
            self.renewals.append(one)

    def _source(self, path: str) -> bytes:
        """Return the source in a file, which no import has asked for."""
        was_on, self.is_on = self.is_on, False
        try:
            with open(path, "rb") as file:
                return file.read()
        finally:
            self.is_on = was_on

    def sums_up(self) -> bool:
        """Return whether an import that walks through the environment is known to only sum up its size."""
        return self.is_on and self.walks.sums_up(bodies.importing())

    def change_variable(self, name: str) -> None:
        """Note that a variable was set or removed, or read where no other value can be put in its place."""
        self.read_variable(name)
        if self.is_on:
            self.variables.add(name)

    def found(self, name: str, value: Any) -> Any:
        """Note what was read; return what the imports are given: in most runs, the same."""
        if not self.is_on or bodies.importing() in KEPT_DIRECTORY:
            return value
        if value and name != DIRECTORY:
            self.set_variables.add(name)
        return value if self.others is None else self.others.of(name, value)

    def read_directory(self) -> None:
        """Note that the working directory was read."""
        if self.is_on:
            known = KEPT_DIRECTORY.get(bodies.importing())
            if known is None and self.before.note_directory(self.current):
                self.fail("reads the working directory, which the command may change before,")
            if known is None:
                self.asks_cwd = True
                self.reads[DIRECTORY] = self.reads.get(DIRECTORY, 0) + 1
            elif known not in self.renewals:
                self.renewals.append(known)

    def look(self, path: object, event: str = "") -> None:
        """Note that a path was examined; a relative one leads to another file in each directory."""
        name = path_lookups.text_of(path)
        if what := recorders.of_the_process(path, name):
            (self.rule_out if what == recorders.ENVIRONMENT else self.fail)(what)
        if self.is_on and self.others is not None:
            self.others.look(name)
        if self.is_on and name.startswith("/"):
            if event != "open" and not effects.is_temporary(name, self.temporary.made):
                (self.seen.read_names if event else self.seen.ask)(name)
        elif self.is_on and name:
            self.read_directory()
            if event and event != "open":
                self.relative_listed.add(facts_of.shortened(name))
            self.relative.update(path_lookups.above(name))
            if len(self.relative) > MOST_RELATIVE:
                self.fail("looks at many files of the working directory")

    def audit(self, event: str, args: tuple[object, ...]) -> None:
        """Judge an audit event of the interpreter."""
        if not self.is_on:
            return
        if self.others is not None:
            self.others.look_at_all(args)
        if event in path_lookups.EVENTS:
            self.look(args[0], event)
        elif effects.is_by_path(event, args):
            self.look(args[0])  # what it makes exists in each run, or is made again
        what = effects.forbidden(event, args, self.temporary.made)
        if what is not None:
            self.unfit.update([self.current] if event in effects.FOR_LATER_IMPORTS else ())
            self.forbid(what)
        if event == "open":
            self._note_open(args)
        elif event == "socket.getaddrinfo" and not effects.is_local(args[0]):
            self.fail("asks the name service")
        else:
            self._note_event(event, args)

    def _note_open(self, args: tuple[object, ...]) -> None:
        path = path_lookups.text_of(args[0])
        is_read = isinstance(args[2], int) and not args[2] & (os.O_WRONLY | os.O_RDWR)
        if is_read and not effects.is_temporary(path, self.temporary.made):
            self.opened.add(path)

    def _note_program(self, event: str, args: tuple[object, ...]) -> None:
        if effects.is_listing_libraries(event, args):
            self.opened.add(effects.LIBRARIES)
        elif program := effects.printing(event, args):
            self.change_variable("PATH")  # it belongs to the key, and with it what the program prints
            for entry in os.get_exec_path():
                self.look(f"{entry}/{program}")
            if program in effects.VARIABLES:
                self.walks.prefixes.add(effects.VARIABLES[program])

    def _note_made(self, event: str, args: tuple[object, ...]) -> None:
        """Note a directory that is about to be made for good, or a temporary file or directory."""
        directory = effects.new_directory(event, args, self.temporary.made)
        if directory is not None:
            self.directories.append((self.current, directory, effects.may_be_there()))
            self.made_file.note_directory(directory, int(str(args[1])))
        elif event in ("tempfile.mkdtemp", "tempfile.mkstemp"):
            path = path_lookups.text_of(args[0])
            self.temporary.made.append(temporary.Made(path, self.current, bodies.importing()))
            self.made_file.note_temporary(path)

    def _note_event(self, event: str, args: tuple[object, ...]) -> None:
        self._note_made(event, args)
        if event == "fcntl.ioctl":
            recorders.ask_terminal(self, int(str(args[0])), is_size=args[1] == recorders.TIOCGWINSZ)
        elif event in ("subprocess.Popen", "os.posix_spawn"):
            self._note_program(event, args)
        elif event == "ctypes.dlopen":
            self.sought.add(os.path.basename(path_lookups.text_of(args[0])))
        elif event in NOTED:
            self.note(NOTED[event])
