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
from .. import made_file
from ..importing import holders, main_module, own_imports, preload, temporary, trampolines, values
from ..renewals import TEMPORARY_DIRECTORY, USER_BASE, USER_SITE, Renewal
from . import (
    arguments,
    changes_before,
    effects,
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
from .watch import Watch

TYPE_CHECKING = False  # type checkers take any variable of this name for true
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    from ..importing.own_changes import Changes

    _Found = TypeVar("_Found")

# Loaded here, since preload needs them: they must not count as the command's.
_LOADED = (ast, importlib.util, own_imports)


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
    watch: Watch,
    command: preload.Command,
    named: list[own_imports.Import],
    changes: Changes,
    expected: dict[str, str],
    excluded: list[str],
) -> None:
    hosts = plugins.hosts_of([one.name for one in named])
    # If one module of a foreign package is a plug-in, others of the package may import it.
    left_out = {plugins.top_of(module) for module in excluded if plugins.is_foreign(module, hosts)}
    unkept = process_state.Unkept()
    _note_libraries(watch, "")
    for one in named:
        watch.before.begin(changes if one.is_after_code else None)
        if one.is_certain and one.name not in excluded and one.is_wanted():
            _import_one(watch, command, one.name)
    watch.copies.are_fillable = False
    watch.before.begin(changes)
    process = _first_look(watch, unkept)
    process.own = plugins.hosts_of([one.name for one in named if one.is_certain])
    for one in named:
        if not one.is_certain and one.name not in excluded and one.is_wanted():
            _import_other(watch, command, one.name, hosts, process)
    is_left = any(one.is_left for one in named)
    for name, origin in expected.items():
        if name not in excluded and plugins.top_of(name) not in left_out:
            opened = set(watch.opened)
            _judge_origin(watch, name, origin, _import_other(watch, command, name, hosts, process))
            _judge_opened(watch, name, watch.opened - opened if is_left else ())


def _note_libraries(watch: Watch, name: str, news: Iterable[str] = ("",)) -> None:
    """Note what variables the libraries read that a module has loaded, if one of these new modules is in C."""
    files = (holders.namespace(sys.modules.get(new)).get("__file__") if new else ".so" for new in news)
    if any(isinstance(file, str) and file.endswith(".so") for file in files):
        watch.before.note_libraries(_unwatched(watch, outcome.prefixes_of_libraries), name)


def _judge_origin(watch: Watch, name: str, origin: str, is_there: bool) -> None:
    """Refuse a module whose file is another one than in the run that has loaded it."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if is_there and origin and file != origin:
        watch.fatal.append((name, f"{name} was {origin} in the run, here it is {file}"))


def _judge_opened(watch: Watch, name: str, paths: Iterable[str]) -> None:
    """Refuse a module that reads a file which a module that is left to the runs may write before; no installed one."""
    fixed = tuple({f"{prefix}/" for prefix in (sys.prefix, sys.base_prefix)})
    for path in paths:
        if not path.startswith(fixed) and not path.endswith((".py", ".so")):
            watch.fatal.append((name, f"{name} reads {path}, which the command may write before, while it is imported"))


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
    recorders.end_import()
    _note_libraries(watch, name, sys.modules.keys() - before)
    if preload.has_loaded(command) and not was_loaded:
        watch.fatal.append((name, f"{name} imports {command.name}, which Python warns of where it comes too early"))
    if is_there:
        news = sys.modules.keys() - before
        watch.owners.update(dict.fromkeys(news, name))
        watch.before.note_loaded(news)
    return is_there


def _first_look(watch: Watch, unkept: process_state.Unkept) -> process_state.Process:
    """Judge the changes of the modules that each run imports, before the other modules are imported."""
    where = _unwatched(watch, unkept.change)
    if where is not None:
        watch.fatal.append(("", f"an import changes {where}"))
    return process_state.Process()


def _unwatched(watch: Watch, look: Callable[[], _Found]) -> _Found:
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


def _wishes(path: str, before: changes_before.Before) -> tuple[dict[str, str], list[str]]:
    """Return the modules that earlier runs have loaded, with their files, and those to leave out.

    ``before`` is given what these runs have changed.
    """
    expected: dict[str, str] = {}
    excluded: list[str] = []
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            module, _, origin = line.rstrip("\n").partition("\t")
            if not module:
                before.of_runs.append(origin)
            elif origin == "-":
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
    named: list[own_imports.Import] = []
    with contextlib.suppress(effects.VetoedError):  # of the package that the command is in
        watch.copies.are_fillable = True  # the package's code is run before any other of the command
        is_usual = preload.package_loads(command)
        program.announce()
        watch.fatal += [("", why) for why in (covered, preload.missing(command)) if why]
        own = own_imports.OwnFile(command)
        named = own.imports()
        if left := own_imports.leave_to_runs(named, excluded):
            module_lookups.forbid(left, watch.forbid_import)
        watch.copies.are_fillable = own.is_quiet()
        if preload.has_loaded(command) and not is_usual:
            watch.fatal.append(("", f"what it imports imports {command.name}: Python warns where that comes too early"))
        is_changed = own.changes.of_process or bool(left and _may_change_others(watch, excluded))
        loaded_before = {} if is_changed else own_imports.without_late(expected, named)
        _import_all(watch, command, named, own.changes, loaded_before, excluded)
        watch.notes += own_imports.put_off(command, named)
    watch.is_on = False
    watch.walks.end()
    watch.copies.end()
    return [one.name for one in named if one.is_certain]


def _may_change_others(watch: Watch, excluded: list[str]) -> bool:
    return _unwatched(watch, functools.partial(changes_before.may_change_others, excluded))


def _judge_changes(watch: Watch, expected: dict[str, str], excluded: list[str]) -> None:
    """Leave modules to the runs that read what a function of another module may have set before."""
    watch.fatal += watch.before.of_libraries() + watch.before.of_functions(watch.owners)
    files = [*expected.values(), *map(changes_before.file_of, excluded)]
    watch.fatal += watch.before.of_modules(files, watch.variables)
    watch.opened |= watch.before.looked_at


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
    notes = made_file.MadeFile(out + made_file.SUFFIX)
    command, watch = preload.Command(kind, name), Watch(made, notes, others, may_keep_directory=sources != "real")
    _install(watch)
    if site == "later":
        _set_up_site(watch)
    preload.arrange(command)
    arguments.stand_in(int(words))
    descriptors, baseline = _open_descriptors(), set(sys.modules)
    _umask(values.MASK)
    start = kept_times.now()
    wishes = _wishes(wanted_file, watch.before)
    roots = _watched(watch, command, *wishes)
    found = [module for module in sys.modules if module not in baseline]
    watch.renewals += kept_times.find(watch, start, found)
    _judge(watch, command, descriptors)
    if not sys.flags.ignore_environment:  # else the seed is not ours, and values made of sets differ
        _write_values(f"{out}.values", watch, found)
    _judge_changes(watch, *wishes)  # last: it loads modules that must not count as the command's
    _write(out, outcome.result(watch, command, found), watch, roots)


def _write_values(path: str, watch: Watch, found: list[str]) -> None:
    known = {(one.module, one.name) for one in watch.renewals}
    values.write(path, found, watch.owners, known, watch.temporary.stems())


def _write(out: str, result: facts_of.Facts, watch: Watch, roots: list[str]) -> None:
    if watch.fatal:
        # Not those that each run makes with exist_ok: a command that runs meanwhile may use them already.
        each = {"", *roots}
        effects.take_back([path for by, path, is_found in watch.directories if by not in each or not is_found])
    excludes: list[str] = []
    # A module that each run imports is left to the runs, with what they import after it.
    left = {module for module, _ in watch.fatal}.intersection(roots) - watch.unfit
    for module, reason in dict.fromkeys(watch.fatal):
        if module in left or (module and module not in roots):
            excludes.append(f"exclude\t{module}\t{reason}\n")
        elif not left:  # else it is judged once more, without what is imported after these modules
            result.refusals.append(reason)
    with open(out, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("".join(excludes) + facts_of.dump(result))
