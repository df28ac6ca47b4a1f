"""The learning run: imports a command's modules under watch, and writes the facts.

It runs in a process of its own, which is thrown away. Recorders replace ``os.environ``, ``os.getcwd`` and the like,
an audit hook judges events, and the process is compared before and after the imports.

Invariant: the recorders do not change what the watched code computes. The one exception is a side effect that must
not happen twice, which ends the import (:mod:`effects`). A module counts as harmless only if it was watched.

Things that do not work:

- comparing ``os.environ`` before and after: a read leaves no trace;
- running the command itself: a command must never run twice.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib.util
import os
import sys

from .. import facts as facts_of
from ..importing import main_module, path_changes, preload, temporary, trampolines, values
from ..renewals import DIRECTORY, TEMPORARY_DIRECTORY, USER_BASE, USER_SITE, WORKING_DIRECTORY, Renewal
from . import (
    arguments,
    effects,
    environment_walk,
    kept,
    kept_times,
    module_lookups,
    outcome,
    path_lookups,
    plugins,
    process_state,
    recorders,
    threads,
)

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

# Loaded here, since preload needs them: they must not count as the command's.
_LOADED = (ast, importlib.util, path_changes)

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


class Watch:
    """Collects events, each with the module that was being imported.

    ``fatal`` holds ``(wanted, reason)``: a module that must not be imported ahead, empty for all of them, and why.
    """

    def __init__(
        self, made: temporary.Directories, others: kept.Others | None = None, *, may_keep_directory: bool = False
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
        self.opened: set[str] = set()
        self.relative: set[str] = set()
        self.relative_listed: set[str] = set()
        self.seen = path_lookups.Seen()
        # Names of modules and libraries that were searched for.
        self.sought: set[str] = set()
        self.asks_tty = self.asks_size = self.asks_cwd = self.asks_umask = False
        self.renewals: list[Renewal] = []
        self.temporary = made
        # Permanent directories that imports have made: by which module, and whether it accepts an existing one.
        self.directories: list[tuple[str, str, bool]] = []
        self.is_on = False

    def fail(self, reason: str) -> None:
        """Note that the current module must not be imported ahead."""
        if self.is_on:
            self.fatal.append((self.current, f"{_importing()} {reason} while it is imported"))

    def forbid(self, reason: str) -> None:
        """Note the same, and prevent what is about to happen. Raises :class:`effects.VetoedError`."""
        if self.is_on:
            self.fail(reason)
            raise effects.VetoedError(reason)

    def note(self, text: str) -> None:
        """Note an event for `unsnarl warm why`."""
        if self.is_on:
            self.notes.append(f"{_importing()} {text} while it is imported")

    def read_variable(self, name: str) -> None:
        """Note that a variable of the environment was read."""
        if not self.is_on:
            return
        if name in VOLATILE:
            self.fail(f"reads ${name}, which differs from call to call,")
        else:
            self.reads[name] = self.reads.get(name, 0) + 1

    def walk(self, reason: str) -> environment_walk.Walk:
        """Note that an import walks through the environment; ``reason`` counts if it reads all of it."""
        why = (self.current, f"{_importing()} {reason} while it is imported")
        return self.walks.begin(lambda: self.fatal.append(why), self._source, self.current)

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
        return self.is_on and self.walks.sums_up(_importing())

    def change_variable(self, name: str) -> None:
        """Note that a variable was set or removed, or read where no other value can be put in its place."""
        self.read_variable(name)
        if self.is_on:
            self.variables.add(name)

    def found(self, name: str, value: Any) -> Any:
        """Note what was read; return what the imports are given: in most runs, the same."""
        if not self.is_on or _importing() in KEPT_DIRECTORY:
            return value
        if value and name != DIRECTORY:
            self.set_variables.add(name)
        return value if self.others is None else self.others.of(name, value)

    def read_directory(self) -> None:
        """Note that the working directory was read."""
        if self.is_on:
            known = KEPT_DIRECTORY.get(_importing())
            if known is None:
                self.asks_cwd = True
                self.reads[DIRECTORY] = self.reads.get(DIRECTORY, 0) + 1
            elif known not in self.renewals:
                self.renewals.append(known)

    def look(self, path: object, event: str = "") -> None:
        """Note that a path was examined; a relative one leads to another file in each directory."""
        name = path_lookups.text_of(path)
        if what := recorders.of_the_process(path, name):
            self.fail(what)
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

    def _note_event(self, event: str, args: tuple[object, ...]) -> None:
        directory = effects.new_directory(event, args, self.temporary.made)
        if directory is not None:
            self.directories.append((self.current, directory, effects.may_be_there()))
        elif event == "fcntl.ioctl":
            recorders.ask_terminal(self, int(str(args[0])), is_size=args[1] == recorders.TIOCGWINSZ)
        elif event in ("tempfile.mkdtemp", "tempfile.mkstemp"):
            self.temporary.made.append(temporary.Made(path_lookups.text_of(args[0]), self.current, _importing()))
        elif effects.is_listing_libraries(event, args):
            self.opened.add(effects.LIBRARIES)
        elif event == "ctypes.dlopen":
            self.sought.add(os.path.basename(path_lookups.text_of(args[0])))
        elif event in NOTED:
            self.note(NOTED[event])


def _importing() -> str:
    """Return the name of the module whose body is running."""
    frame: FrameType | None = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    while frame is not None:
        if frame.f_code.co_name == "<module>" and not frame.f_globals.get("__name__", "").startswith("_unsnarl"):
            return str(frame.f_globals.get("__name__"))
        frame = frame.f_back
    return "it"


def _try(watch: Watch, name: str) -> bool:
    """Import a module; return whether that succeeded."""
    try:
        __import__(name)
    except effects.VetoedError:
        return False  # already noted
    except BaseException as problem:
        watch.walks.end_with(name)
        watch.notes.append(f"{name} is left out: importing it ends with {type(problem).__name__}")
        return False
    return True


def _import_all(
    watch: Watch, command: preload.Command, named: list[preload.Import], expected: dict[str, str], excluded: list[str]
) -> None:
    hosts = plugins.hosts_of([one.name for one in named])
    # If one module of a foreign package is a plug-in, others of the package may import it.
    left_out = {plugins.top_of(module) for module in excluded if plugins.is_foreign(module, hosts)}
    unkept = process_state.Unkept()
    for one in named:
        if one.is_certain and one.name not in excluded and one.is_wanted():
            _import_one(watch, command, one.name)
    process = _first_look(watch, unkept)
    process.own = plugins.hosts_of([one.name for one in named if one.is_certain])
    for one in named:
        if not one.is_certain and one.name not in excluded and one.is_wanted():
            _import_other(watch, command, one.name, hosts, process)
    for name, origin in expected.items():
        if name not in excluded and plugins.top_of(name) not in left_out:
            _judge_origin(watch, name, origin, _import_other(watch, command, name, hosts, process))


def _judge_origin(watch: Watch, name: str, origin: str, is_there: bool) -> None:
    """Refuse a module whose file is another one than in the run that has loaded it."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if is_there and origin and file != origin:
        watch.fatal.append((name, f"{name} was {origin} in the run, here it is {file}"))


def _import_other(
    watch: Watch, command: preload.Command, name: str, hosts: frozenset[str], process: process_state.Process
) -> bool:
    """Import a module that may not be in each run; it must not change what the other runs find."""
    host = plugins.Host(hosts) if name not in sys.modules and plugins.is_foreign(name, hosts) else None
    is_judged, is_new = process.judges(name), name not in sys.modules
    if is_judged:
        _unwatched(watch, process.look)
    is_there = _import_one(watch, command, name)
    change = _unwatched(watch, process.change) if is_judged else None
    if is_new and not is_judged:
        process.forget()
    where = (host.change() if host is not None else None) or change
    if where is not None:
        watch.fatal.append((name, f"{name} changes {where} while it is imported"))
    return is_there


def _import_one(watch: Watch, command: preload.Command, name: str) -> bool:
    watch.current = name
    before, was_loaded = set(sys.modules), preload.has_loaded(command)
    is_there = _try(watch, name)
    if preload.has_loaded(command) and not was_loaded:
        watch.fatal.append((name, f"{name} imports {command.name}, which Python warns of where it comes too early"))
    if is_there:
        watch.owners.update(dict.fromkeys(sys.modules.keys() - before, name))
    return is_there


def _first_look(watch: Watch, unkept: process_state.Unkept) -> process_state.Process:
    """Judge the changes of the modules that each run imports, before the other modules are imported."""
    where = _unwatched(watch, unkept.change)
    if where is not None:
        watch.fatal.append(("", f"an import changes {where}"))
    return process_state.Process()


def _unwatched(watch: Watch, look: Callable[[], str | None]) -> str | None:
    """Call a function of ours without recording."""
    watch.is_on = False
    try:
        return look()
    finally:
        watch.is_on = True


_umask = os.umask


def _open_descriptors() -> set[str]:
    return {fd for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}


def _judge_temporary(watch: Watch, command: preload.Command) -> None:
    if not watch.temporary.left():
        return
    watched = {*outcome.directories(), *map(os.path.dirname, outcome.files(watch, command)), os.getcwd()}
    watched |= {os.path.abspath(path) for path in watch.relative}
    for made in watch.temporary.made:
        if made.stem() and os.path.dirname(made.path) not in watched and made.find_places():
            watch.renewals += [Renewal(module, name, TEMPORARY_DIRECTORY) for module, name in made.places]
        else:
            watch.fatal.append((made.owner, f"{made.module} makes the temporary {made.path} while it is imported"))
    watch.temporary.update_ends()


def _judge_process(watch: Watch, before: set[str]) -> None:
    if _umask(values.MASK) != values.MASK:
        watch.fatal.append(("", "an import changes the file mode mask"))
    for fd in _open_descriptors() - before:
        if trampolines.is_of_libffi(f"/proc/self/fd/{fd}"):
            continue  # a server opens it before the imports, at a high number
        target = os.readlink(f"/proc/self/fd/{fd}")
        watch.fatal.append(("", f"an import leaves {target} open"))
    if threads.are_left():
        watch.fatal.append(("", "an import leaves a thread running"))
    with open(f"/proc/self/task/{os.getpid()}/children") as children:
        if children.read():
            watch.fatal.append(("", "an import leaves a child process"))


def _wishes(path: str) -> tuple[dict[str, str], list[str]]:
    """Return the modules that earlier runs have loaded, with their files, and those to leave out."""
    expected: dict[str, str] = {}
    excluded: list[str] = []
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            module, _, origin = line.rstrip("\n").partition("\t")
            if origin == "-":
                excluded.append(module)
            else:
                expected[module] = origin
    return expected, excluded


def _install(watch: Watch) -> None:
    sys.addaudithook(watch.audit)
    recorders.install(watch)
    arguments.watch(functools.partial(watch.fail, "decides something by the arguments"))
    path_lookups.watch(watch.look)
    module_lookups.watch(watch.sought, watch.seen.portions, watch.look)
    watch.temporary.watch_ends()


def _set_up_site(watch: Watch) -> None:
    """Run ``site`` under watch, which the interpreter has skipped: .pth files, ``sitecustomize``."""
    import site

    del sys.orig_argv[sys.orig_argv.index(sys.argv[0]) - 1]
    plain: Callable[[], str] = site.getuserbase

    def getuserbase() -> str:
        # What it reads, it keeps: each worker computes it again.
        was_on, watch.is_on = watch.is_on, False
        try:
            return plain()
        finally:
            watch.is_on = was_on

    site.getuserbase = getuserbase
    watch.is_on = True
    with contextlib.suppress(effects.VetoedError):
        site.main()
    watch.is_on = False
    site.getuserbase = plain
    watch.renewals += [Renewal("site", "USER_BASE", USER_BASE), Renewal("site", "USER_SITE", USER_SITE)]


def _watched(watch: Watch, command: preload.Command, expected: dict[str, str], excluded: list[str]) -> list[str]:
    """Import all modules under watch; return those that each run imports."""
    program = main_module.MainModule(command)
    covered, watch.is_on = preload.covered(), True
    named: list[preload.Import] = []
    with contextlib.suppress(effects.VetoedError):  # of the package that the command is in
        is_usual = preload.package_loads(command)
        program.announce()
        watch.fatal += [("", why) for why in (covered, preload.missing(command)) if why]
        named = preload.imports(command)
        if preload.has_loaded(command) and not is_usual:
            watch.fatal.append(("", f"what it imports imports {command.name}: Python warns where that comes too early"))
        _import_all(watch, command, named, preload.without_late(expected, named), excluded)
        watch.notes += preload.put_off(command, named)
    watch.is_on = False
    watch.walks.end()
    return [one.name for one in named if one.is_certain]


def _judge(watch: Watch, command: preload.Command, descriptors: set[str]) -> None:
    """Judge what the imports have left in the process."""
    gc.collect()
    _judge_process(watch, descriptors)
    for name in watch.walks.unbound():
        watch.fatal.append((watch.owners.get(name, ""), f"{name} keeps the size of the environment"))
    _judge_temporary(watch, command)
    if watch.others is not None:
        watch.renewals += watch.others.places()
    for where in preload.argument_copies()[1]:
        watch.fatal.append(("", f"{where} keeps the arguments in a form that cannot be replaced"))


def main(args: list[str], made: temporary.Directories) -> None:
    """Learn a command; write facts and ``exclude`` lines to OUT, and the values to compare to OUT.values.

    ``made`` gets the temporary files that the imports make. Words: ``OUT KIND NAME WANTED SEED SITE WORDS OTHERS``.

    - WANTED: a file of ``module<TAB>file`` lines, the modules that earlier runs have loaded.
    - SEED: ``given`` if the hash seed was set to make two learning runs comparable, and is not the caller's.
    - SITE: ``later`` if the interpreter was started with ``-S``, so that start-up files can be watched.
    - WORDS: the number of arguments that the imports find.
    - OTHERS: ``real``; or ``quick``, where a directory that is read may be kept only, so that what is looked up in it
      counts, and not all names; or after a ``+`` the variables, one a line, and ``.`` for the directory, of which the
      imports find another value.
    """
    out, kind, name, wanted_file, seed, site, words, sources = args
    sys.dont_write_bytecode, sys.argv[1:] = True, []
    if seed == "given":
        os.environ.pop("PYTHONHASHSEED")
    others = kept.Others(sources[1:].split("\n")) if sources.startswith("+") else None
    command, watch = preload.Command(kind, name), Watch(made, others, may_keep_directory=sources != "real")
    _install(watch)
    if site == "later":
        _set_up_site(watch)
    preload.arrange(command)
    arguments.stand_in(int(words))
    descriptors, baseline = _open_descriptors(), set(sys.modules)
    _umask(values.MASK)
    start = kept_times.now()
    roots = _watched(watch, command, *_wishes(wanted_file))
    found = [module for module in sys.modules if module not in baseline]
    watch.renewals += kept_times.find(watch, start, found)
    _judge(watch, command, descriptors)
    if not sys.flags.ignore_environment:  # else the seed is not ours, and values made of sets differ
        known = {(one.module, one.name) for one in watch.renewals}
        values.write(f"{out}.values", found, watch.owners, known, watch.temporary.stems())
    _write(out, outcome.result(watch, command, found), watch, roots)


def _write(out: str, result: facts_of.Facts, watch: Watch, roots: list[str]) -> None:
    if watch.fatal:
        # Not those that each run makes with exist_ok: a command that runs meanwhile may use them already.
        each = {"", *roots}
        effects.take_back([path for by, path, is_found in watch.directories if by not in each or not is_found])
    excludes: list[str] = []
    for module, reason in dict.fromkeys(watch.fatal):
        if module in roots or not module:
            result.refusals.append(reason)
        else:
            excludes.append(f"exclude\t{module}\t{reason}\n")
    with open(out, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(excludes) + facts_of.dump(result))
