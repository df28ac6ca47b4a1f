"""Learns a command: makes learning runs, each in a process of its own, and compares what they have found.

The usual first learning makes one run, and leaves the comparison to the server (``serving/proof.py``). Otherwise there
are two, the second one with other values of what the first has read, and a third one if these two do not agree.

Must never run a line of the command but its imports. Only loaded by a start that learns.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterable

from unsnarl.warm import changed, made_file
from unsnarl.warm import facts as facts_of
from unsnarl.warm.importing import values
from unsnarl.warm.managing.patience import Patience
from unsnarl.warm.managing.start import LAUNCH, Start
from unsnarl.warm.managing.terminal import Terminal
from unsnarl.warm.renewals import DIRECTORY, TEMPORARY_DIRECTORY, Recipe, Renewal
from unsnarl.warm.worker import import_hooks

# Most rounds of learning: each leaves out the modules that failed, and their absence may make others fail.
ROUNDS = 6
# Seconds after which a learning run is ended: an import waits for an event.
LEARN_TIMEOUT_S = 120
# Number of arguments in a learning run; the second run has none, which shows values made of their number.
ARGUMENTS = 3
# Seconds after which a learning run that failed is tried again.
TRY_AGAIN_S = 600

# Kinds of a learning run with the real values (`learning/probe.py`).
REAL, QUICK = "real", "quick"

# Variables whose values belong to each key (crates/client/src/server/key.rs): it does not matter who keeps them.
ALWAYS = frozenset(("TZ", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE"))
ALWAYS_BY_PREFIX = ("PYTHON", "LD_", "MALLOC_", "UNSNARL")


def learn(start: Start, known: facts_of.Facts | None = None, *, is_quick: bool = False) -> facts_of.Facts:
    """Repeat the learning run, without the modules that fail, until none fails; return the facts.

    With ``is_quick``, one run without a failure is enough where the server can do the rest (:func:`_defer`).

    The values of ``known`` facts were compared in two runs before. They are not compared again if they are equal
    here, unless one of them has a recipe that only a comparison finds: in other circumstances it may not need one. Of
    the modules that earlier runs have loaded, only those are imported then that the facts name: a server learns the
    others in circumstances that are known.
    """
    wanted, notes, changed_size = wanted_modules(start, known), list[str](), changed.size(start.stem)
    if import_hooks.MARK in wanted:
        wanted = {}
        notes.append("nothing is learned from its runs: they change how modules are imported, or measure them")
    result = facts_of.Facts()
    for attempt in range(ROUNDS):
        if attempt == ROUNDS - 1:
            # Only the modules that its own file names.
            wanted = dict.fromkeys(wanted, "-")
        result, excluded = _probe(start, wanted, known, is_quick=is_quick)
        notes += [f"{module} is not imported ahead: {why}" for module, why in excluded.items()]
        if result.refusals and any(path != "-" for path in wanted.values()):
            # A module that only some runs load may be the reason; which one is unknown.
            notes += [f"modules of earlier runs are not imported ahead: {why}" for why in result.refusals]
            wanted = dict.fromkeys(wanted, "-")
            continue
        if result.refusals or not excluded:
            break
        for module in excluded:
            wanted[module] = "-"
    else:
        result.refusals.append("learning could not separate the modules that must not be imported ahead")
    result.command, result.changed_size = start.name, changed_size
    result.notes = [*notes, *result.notes]
    _judge_files(result)
    if result.refusals and not result.expires:
        result.expires = int(time.time()) + facts_of.LOOK_AGAIN_S
    return result


def _judge_files(result: facts_of.Facts) -> None:
    """Refuse a command whose imports change the files they load."""
    changed = result.changed_file()
    if changed is not None and not result.refusals:
        result.refusals.append(f"{changed} changes whenever the command is imported")
        # The next plain run changes it again, so its stamp must not end the verdict.
        for known in (result.files, result.asked):
            known.pop(changed, None)
        result.expires = int(time.time()) + TRY_AGAIN_S


def wanted_modules(start: Start, known: facts_of.Facts | None) -> dict[str, str]:
    """Return the modules that earlier runs have loaded, with their files; only those of known facts, if there are."""
    taken = None if known is None else {*known.modules, import_hooks.MARK}
    wanted: dict[str, str] = {}
    try:
        with open(start.stem + ".wanted", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                module, _, path = line.rstrip("\n").partition("\t")
                if taken is None or module in taken:
                    wanted[module] = path
    except OSError:
        return {}
    return wanted


def _probe(
    start: Start, wanted: dict[str, str], known: facts_of.Facts | None, *, is_quick: bool
) -> tuple[facts_of.Facts, dict[str, str]]:
    """Watch the imports, and a second time to find values that differ from run to run, and variables only kept."""
    with tempfile.TemporaryDirectory(dir=start.runtime_directory, prefix="learn-") as scratch:
        wish, *outs = (os.path.join(scratch, name) for name in ("wish", "first", "second", "third"))
        with open(wish, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{module}\t{path}\n" for module, path in wanted.items())
            file.writelines(f"\t{line}\n" for line in changed.read(start.stem))
            file.write("\t\n" if changed.is_there(start.stem) else "")
        result, excluded = _watch(start, wish, outs[0], sources=QUICK if is_quick else REAL)
        if result.refusals or excluded:
            return result, excluded
        doubtful = _doubtful(result, known)
        # Nothing with -E or -I, which ignore the seed: nothing can be compared.
        result.fingerprint = values.fingerprint(outs[0] + ".values", _places(known.renewals if known else []))
        if not result.fingerprint:
            _settle(result, set())
        elif known is not None and not doubtful and _are_constant(result, known):
            result.renewals += [one for one in known.renewals if one.recipe.source in _with_value(result, one)]
        elif is_quick and not any(one.recipe == TEMPORARY_DIRECTORY for one in result.renewals):
            _defer(start, result, doubtful, outs[0] + ".values")
        else:
            return _compare(start, wish, outs, result)
        return result, excluded


def _defer(start: Start, result: facts_of.Facts, doubtful: set[str], found: str) -> None:
    """Leave the comparison of values to the server, and that with other values of variables to their first other value.

    Until then each of these variables counts as deciding something.
    """
    result.doubtful = {name: start.digest(name) for name in doubtful}
    _settle(result, set())
    result.is_unproven = True
    os.replace(found, start.stem + facts_of.VALUES)


def _with_value(result: facts_of.Facts, one: Renewal) -> set[str]:
    """Return the sources that have a value here, for a recipe that keeps one."""
    return {name for name, kept in result.kept.items() if kept.was_set} if one.recipe.is_kept else set()


def _doubtful(result: facts_of.Facts, known: facts_of.Facts | None) -> set[str]:
    """Return the variables read here of which it is not known whether they are only kept; settle the others."""
    decided = {name for name in result.kept if name in ALWAYS or name.startswith(ALWAYS_BY_PREFIX)}
    if known is not None:
        decided |= {*known.variables, *([DIRECTORY] if known.asks_cwd else [])}
    _settle(result, {*result.kept}.difference(decided))
    old = known.kept if known is not None else {}
    unknown = facts_of.Kept(0, False)
    return {
        name
        for name, one in result.kept.items()
        if one.was_set and not (old.get(name, unknown).was_set and one.reads <= old.get(name, unknown).reads)
    }


def _settle(result: facts_of.Facts, kept: set[str]) -> None:
    """Count the variables that were read and are not in ``kept`` among those that decide something."""
    for name in [name for name, one in result.kept.items() if one.was_set and name not in kept]:
        del result.kept[name]
        if name == DIRECTORY:
            result.asks_cwd = True
        else:
            result.variables = sorted({*result.variables, name})


def _places(renewals: list[Renewal]) -> set[tuple[str, str]]:
    return {(one.module, one.name) for one in renewals if one.recipe.is_kept}


def _compare(start: Start, wish: str, outs: list[str], first: facts_of.Facts) -> tuple[facts_of.Facts, dict[str, str]]:
    """Watch again, and a third time if chance or a clock that was set has misled one of the two runs."""
    sources = sorted(name for name, one in first.kept.items() if one.was_set)
    again, excluded, sources = _watch_others(start, wish, outs, sources)
    if again.refusals or excluded:
        return again, excluded
    sources = [name for name in sources if name in again.kept]
    looks = [first, again]
    differing = {(row[1], row[2]): (row[0], row[3]) for row in _differing(outs[0], outs[1])}
    if {*_unkept(again)} != {*_unkept(first)} or not all(recipe for _, recipe in differing.values()):
        third, excluded = _watch(start, wish, outs[2], ARGUMENTS, sources)
        if third.refusals or excluded:
            return third, excluded
        looks.append(third)
        for owner, module, name, recipe in _differing(outs[1], outs[2]):
            differing[module, name] = (owner, recipe or differing.get((module, name), ("", None))[1])
        sources = [name for name in sources if name in third.kept]
    first.variables = _joined([look.variables for look in looks])
    _settle(first, {*sources})
    first.renewals = _of_most(looks)
    first.renewals += [one for one in again.renewals if one.recipe.is_kept and one.recipe.source in sources]
    first.late = _joined([look.late for look in looks])
    first.sought = _joined([look.sought for look in looks])
    first.enumerated = _joined([look.enumerated for look in looks])
    if DIRECTORY in sources:
        first.asks_cwd = False
        first.files, first.directories = again.files, again.directories
        first.asked, first.listed = again.asked, again.listed
    first.fingerprint = values.fingerprint(outs[0] + ".values", _places(first.renewals))
    return first, _judge_differing(first, differing)


def _joined(found: list[list[str]]) -> list[str]:
    return sorted({text for one in found for text in one})


def _differing(one: str, other: str) -> list[tuple[str, str, str, Recipe | None]]:
    """Compare the values of two learning runs, given the files that they wrote."""
    return values.differing(values.read(f"{one}.values"), values.read(f"{other}.values"))


def _watch_others(
    start: Start, wish: str, outs: list[str], sources: list[str]
) -> tuple[facts_of.Facts, dict[str, str], list[str]]:
    """Watch a second time, with other values of these sources, unless the imports fail or come out otherwise then.

    Returns the sources that had another value in the end, too: nothing is known of the others.
    """
    while True:
        again, excluded = _watch(start, wish, outs[1], 0, sources)
        is_odd = bool(again.refusals or excluded) or not all(row[3] for row in _differing(outs[0], outs[1]))
        if not sources or not is_odd:
            return again, excluded, sources
        # One of them decides something. If it is not known which, all may.
        decided = [name for name in sources if name not in again.kept]
        sources = [name for name in sources if name in again.kept] if decided and not again.refusals else []


def _unkept(look: facts_of.Facts) -> list[Renewal]:
    return [one for one in look.renewals if not one.recipe.is_kept]


def _judge_differing(
    result: facts_of.Facts, differing: dict[tuple[str, str], tuple[str, Recipe | None]]
) -> dict[str, str]:
    """Add a renewal for each value that differs, or else exclude or refuse its module; return the excluded, and why."""
    excluded: dict[str, str] = {}
    for (module, name), (owner, recipe) in differing.items():
        reason = values.differs(module, name)
        if recipe:
            result.renewals.append(Renewal(module, name, recipe))
        elif owner:
            excluded[owner] = reason
        else:
            result.refusals.append(reason)
    return excluded


def _of_most(looks: list[facts_of.Facts]) -> list[Renewal]:
    """Return the renewals that most runs have found: a constant may fit into a clock's interval by chance."""
    found = [one for look in looks for one in _unkept(look)]
    return [one for one in dict.fromkeys(found) if 2 * found.count(one) > len(looks)]


def _are_constant(result: facts_of.Facts, known: facts_of.Facts | None) -> bool:
    """Return whether the values equal those of a comparison in which no value differed."""
    if known is None or known.is_unproven or any(one.recipe.needs_comparison for one in known.renewals):
        return False
    return result.fingerprint == known.fingerprint and {*_unkept(result)} <= {*known.renewals}


def _watch(
    start: Start, wish: str, out: str, count: int = ARGUMENTS, sources: Iterable[str] | str = REAL
) -> tuple[facts_of.Facts, dict[str, str]]:
    is_seeded = not start.has_seed
    environ = {**start.environment, **({b"PYTHONHASHSEED": b"%d" % start.seed} if is_seeded else {})}
    # A word with an S may be that option, or contain it.
    has_site = not any("S" in option for option in start.options)
    role = ["probe", out, start.kind, start.name, wish, "given" if is_seeded else "own"]
    role += [
        "later" if has_site else "done",
        str(count),
        sources if isinstance(sources, str) else "+" + "\n".join(sources),
    ]
    kinds, _, size = start.tty.partition(":")
    try:
        terminal = Terminal(size) if "1" in kinds else None
    except OSError as problem:
        return _refused(start, f"no terminal could be opened for learning: {problem.strerror}"), {}
    with open(os.devnull, "rb") as nothing, open(out + ".said", "wb") as spoken:
        usual = [nothing.fileno(), spoken.fileno(), spoken.fileno()]
        asked = zip(usual, kinds, strict=True)
        streams = [terminal.slave if terminal and is_tty == "1" else fd for fd, is_tty in asked]
        try:
            argv = [start.python, *start.options, *(["-S"] if has_site else []), LAUNCH, *role]
            notes = out + made_file.SUFFIX
            if not (start.gives_way and _is_run(argv, streams, environ, start, notes)):
                start.gives_way = False  # nor does a later run
                spoken.truncate(spoken.seek(0))  # what the first run has said, which was ended
                if not _is_run(argv, streams, environ, start, notes):
                    return _refused(start, f"importing it takes more than {LEARN_TIMEOUT_S} s"), {}
        finally:
            shown = terminal.close() if terminal else ""
    with open(out + ".said", encoding="utf-8", errors="replace") as spoken_again:
        words = spoken_again.read() + shown
    return _read(start, out, words)


def _is_run(argv: list[str], streams: list[int], environ: dict[bytes, bytes], start: Start, notes: str) -> bool:
    """Make a learning run; return whether it came to an end in time. What it has made is put in order."""
    try:
        return _comes_to_an_end(argv, streams, environ, start)
    finally:
        made_file.put_in_order(notes, start.umask)


def _comes_to_an_end(argv: list[str], streams: list[int], environ: dict[bytes, bytes], start: Start) -> bool:
    """Make a learning run, at idle priority if the start gives way; return whether it came to an end in time."""
    with subprocess.Popen(argv, stdin=streams[0], stdout=streams[1], stderr=streams[2], env=environ) as run:
        try:
            if start.gives_way:
                _give_way(run.pid)
                if not Patience(start.stem, start.environment).waits_for(run):
                    run.kill()
                    return False
            run.wait(LEARN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            run.kill()
            return False
        except BaseException:  # the start was asked to end
            run.kill()
            raise
    return True


def _give_way(pid: int) -> None:
    """Let a process run, and read files, only while no other process wants to.

    The kernel takes the priority of input and output from the policy (``task_nice_ioclass``). No process without
    privileges gets back from this policy, so it is none for a server, which takes over its start's process.
    """
    with contextlib.suppress(OSError):
        if os.sched_getscheduler(pid) == os.SCHED_OTHER:
            os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


def _read(start: Start, out: str, words: str) -> tuple[facts_of.Facts, dict[str, str]]:
    try:
        with open(out, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
        excluding = [line for line in lines if line.startswith("exclude\t")]  # one for each reason
        excluded = _reasons(excluding)
        result = facts_of.parse("".join(lines[len(excluding) :]))
    except (OSError, ValueError):
        return _refused(start, f"its imports could not be watched: {_kind_of_end(words)}"), {}
    result.note_reads_in_c()
    result.seed = start.seed
    if words and not excluded:
        # Without the text, which may be the value of a variable: this is stored in a file.
        result.refusals.append("it prints while it is imported")
    return result, excluded


def _reasons(lines: list[str]) -> dict[str, str]:
    """Return the modules of ``exclude`` lines, and why each is left out; of many reasons the first and the last."""
    found: dict[str, list[str]] = {}
    for line in lines:
        _, module, why = line.rstrip("\n").split("\t", 2)
        found.setdefault(module, []).append(why)
    return {module: "; ".join(dict.fromkeys([reasons[0], reasons[-1]])) for module, reasons in found.items()}


_TOO_OLD = "unsnarl warm needs Python "
"""Beginning of the message of launch.py."""


def _kind_of_end(words: str) -> str:
    """Return the type of the exception that ended a learning run, without its message."""
    last = words.strip().rpartition("\n")[2]
    if last.startswith(_TOO_OLD):
        return last
    kind = last.partition(":")[0]
    is_exception = kind.replace(".", "").isidentifier() and kind.endswith(("Error", "Exception", "Exit", "Interrupt"))
    return kind if is_exception else "the interpreter ended early"


def _refused(start: Start, why: str) -> facts_of.Facts:
    result = facts_of.Facts()
    result.refusals.append(why)
    result.files = {path: facts_of.stamp_of(path) for path in (start.python, start.name) if path.startswith("/")}
    # The reason may pass: a slow disk, a lack of memory.
    result.expires = int(time.time()) + TRY_AGAIN_S
    return result
