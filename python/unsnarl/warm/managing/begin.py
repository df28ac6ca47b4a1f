"""Second step of a start: learn the command if need be, then become its server.

``python -m unsnarl.warm.managing.begin EXE HOUSE COMMAND_ID KEY_ID SESSION TTY KIND NAME PYTHON [options]``
with the key's lock at descriptor 3 and the key at descriptor 4.

Invariant: this process either becomes the server, or becomes the native
client again to compute a key that learning has changed, or leaves a record
that says why the command runs plainly.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import NoReturn

from unsnarl.warm import facts as facts_of
from unsnarl.warm.importing import preload, values
from unsnarl.warm.managing import runtime_directory, sweep
from unsnarl.warm.renewals import Recipe, Renewal
from unsnarl.warm.serving import successor
from unsnarl.warm.worker import import_hooks

# A module may drag another unwelcome one in; each round leaves out what failed.
ROUNDS = 6
# Seconds after which a learning run is given up: an import that waits for something.
LEARN_TIMEOUT_S = 120
# How many arguments a learning run has; the second one has none, to tell what is made of their number.
ARGUMENTS = 3
# Bytes after which the log begins anew: the runtime directory is in memory, as a rule.
LOG_BYTES = 1 << 20
# Seconds after which a learning run that failed is tried again.
TRY_AGAIN_S = 600
# Circumstances that are remembered; the others are looked at again.
MOST_VERIFIED = 256

_LAUNCH = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "launch.py")


class Start:
    """Hold the words of the command line, see the head of this file."""

    def __init__(self, words: list[str]) -> None:
        self.exe, self.house, self.command_id, self.key_id, self.session, self.tty = words[:6]
        self.kind, self.name, self.python = words[6:9]
        self.options = words[9:]
        # Without what this interpreter has added, or the key computed here would be another than a client's.
        self.environment = preload.environment_as_given()
        # The caller's, for the imports of a server may ask for it; what is written here is nobody else's to read.
        self.umask = os.umask(0o077)

    @property
    def stem(self) -> str:
        """Return the path of the command's record, without suffix."""
        return os.path.join(self.house, self.command_id)


def learn(start: Start, known: facts_of.Facts | None = None) -> facts_of.Facts:
    """Run the probe until nothing unwelcome is left, and return its facts.

    The values of ``known`` facts have been looked at in two runs before. They are not compared again if they are the
    same here, unless something in them is set anew in each run: in other circumstances it need not be.
    """
    wanted = _wanted(start)
    notes: list[str] = []
    if import_hooks.MARK in wanted:
        wanted = {}
        notes.append("nothing is learned from its runs: they change how modules are imported, or measure them")
    result = facts_of.Facts()
    for attempt in range(ROUNDS):
        if attempt == ROUNDS - 1:
            # What its own file names, and nothing else.
            wanted = dict.fromkeys(wanted, "-")
        result, excluded = _probe(start, wanted, known)
        notes += [f"{module} is not imported ahead: {why}" for module, why in excluded.items()]
        if result.refusals and any(path != "-" for path in wanted.values()):
            # Perhaps for one that only some runs load; which one, nothing tells.
            notes += [f"what runs have loaded is not imported ahead: {why}" for why in result.refusals]
            wanted = dict.fromkeys(wanted, "-")
            continue
        if result.refusals or not excluded:
            break
        for module in excluded:
            wanted[module] = "-"
    else:
        result.refusals.append("its imports could not be told apart from what must not be imported ahead")
    result.command = start.name
    result.notes = [*notes, *result.notes]
    _judge_files(result)
    if result.refusals and not result.expires:
        result.expires = int(time.time()) + facts_of.LOOK_AGAIN_S
    return result


def _judge_files(result: facts_of.Facts) -> None:
    """Refuse a command whose imports change what they load."""
    changed = result.changed_file()
    if changed is not None and not result.refusals:
        result.refusals.append(f"{changed} changes whenever the command is imported")
        # It is to change again in the next plain run, and says nothing about the verdict.
        for known in (result.files, result.asked):
            known.pop(changed, None)
        result.expires = int(time.time()) + TRY_AGAIN_S


def _wanted(start: Start) -> dict[str, str]:
    """Return what earlier runs have loaded: module to file."""
    wanted: dict[str, str] = {}
    try:
        with open(start.stem + ".wanted", encoding="utf-8", errors="surrogateescape") as file:
            for line in file:
                module, _, path = line.rstrip("\n").partition("\t")
                wanted[module] = path
    except OSError:
        return {}
    return wanted


def _probe(start: Start, wanted: dict[str, str], known: facts_of.Facts | None) -> tuple[facts_of.Facts, dict[str, str]]:
    """Look at the imports, and a second time for what differs from run to run."""
    with tempfile.TemporaryDirectory(dir=start.house, prefix="learn-") as scratch:
        wish, *outs = (os.path.join(scratch, name) for name in ("wish", "first", "second", "third"))
        with open(wish, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{module}\t{path}\n" for module, path in wanted.items())
        result, excluded = _look(start, wish, outs[0])
        # There is none with -E or -I, where the seed is not ours.
        result.fingerprint = values.fingerprint(outs[0] + ".values")
        if result.refusals or excluded or not result.fingerprint or _are_constant(result, known):
            return result, excluded
        return _compare(start, wanted, wish, outs, result)


def _compare(
    start: Start, wanted: dict[str, str], wish: str, outs: list[str], first: facts_of.Facts
) -> tuple[facts_of.Facts, dict[str, str]]:
    """Look again, and a third time where chance or a clock that was set has misled one of two looks."""
    looks = [first]
    differing: dict[tuple[str, str], tuple[str, Recipe | None]] = {}
    for before, out in itertools.pairwise(outs):
        again, excluded = _look(start, wish, out, 0 if len(looks) == 1 else ARGUMENTS)
        if again.refusals or excluded:
            return again, excluded
        looks.append(again)
        for owner, module, name, recipe in values.differing(before + ".values", out + ".values"):
            differing[module, name] = (owner, recipe or differing.get((module, name), ("", None))[1])
        if set(again.renewals) == set(first.renewals) and all(recipe for _, recipe in differing.values()):
            break
    first.renewals = _of_most(looks)
    return first, _judge_differing(first, differing, wanted)


def _judge_differing(
    result: facts_of.Facts, differing: dict[tuple[str, str], tuple[str, Recipe | None]], wanted: dict[str, str]
) -> dict[str, str]:
    """Have what differs set anew, or else leave out or refuse who makes it; returns what is left out, and why."""
    excluded: dict[str, str] = {}
    for (module, name), (owner, recipe) in differing.items():
        reason = f"{module}.{name} differs from run to run"
        if recipe:
            result.renewals.append(Renewal(module, name, recipe))
        elif owner in wanted:
            excluded[owner] = reason
        else:
            result.refusals.append(reason)
    return excluded


def _of_most(looks: list[facts_of.Facts]) -> list[Renewal]:
    """Return what most of the looks have found: a number that is always the same fits into a clock's by chance."""
    found = [one for look in looks for one in look.renewals]
    return [one for one in dict.fromkeys(found) if 2 * found.count(one) > len(looks)]


def _are_constant(result: facts_of.Facts, known: facts_of.Facts | None) -> bool:
    """Say whether nothing in these modules is known to differ from run to run, and they hold what was compared."""
    if known is None or any(one.recipe.needs_comparison for one in known.renewals):
        return False
    return result.fingerprint == known.fingerprint and set(result.renewals) <= set(known.renewals)


def _look(start: Start, wish: str, out: str, count: int = ARGUMENTS) -> tuple[facts_of.Facts, dict[str, str]]:
    is_seeded = not start.environment.get(b"PYTHONHASHSEED")  # set to nothing, it is as if it were not set
    environ = {**start.environment, **({b"PYTHONHASHSEED": b"1"} if is_seeded else {})}
    # A word with an S may be that option already, or end in its value.
    has_site = not any("S" in option for option in start.options)
    role = [
        "probe",
        out,
        start.kind,
        start.name,
        wish,
        "given" if is_seeded else "own",
        "later" if has_site else "done",
        str(count),
    ]
    try:
        terminal = Terminal() if "1" in start.tty else None
    except OSError as problem:
        return _refused(start, f"there is no terminal to learn on: {problem.strerror}"), {}
    with open(os.devnull, "rb") as nothing, open(out + ".said", "wb") as spoken:
        usual = [nothing.fileno(), spoken.fileno(), spoken.fileno()]
        asked = zip(usual, start.tty, strict=True)
        streams = [terminal.slave if terminal and is_tty == "1" else fd for fd, is_tty in asked]
        try:
            subprocess.run(
                [start.python, *start.options, *(["-S"] if has_site else []), _LAUNCH, *role],
                stdin=streams[0], stdout=streams[1], stderr=streams[2],
                timeout=LEARN_TIMEOUT_S, check=False, env=environ,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return _refused(start, f"importing it takes more than {LEARN_TIMEOUT_S} s"), {}
        finally:
            shown = terminal.close() if terminal else ""
    with open(out + ".said", encoding="utf-8", errors="replace") as spoken_again:
        words = spoken_again.read() + shown
    return _read(start, out, words)


class Terminal:
    """A terminal for imports that ask for one; what they write is read, or they would wait for that."""

    def __init__(self) -> None:
        self._master, self.slave = os.openpty()
        self._shown = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while data := os.read(self._master, 4096):
                self._shown += data
        except OSError:
            pass  # nobody has the other side open any more

    def close(self) -> str:
        """Give it back; returns what was written to it."""
        os.close(self.slave)
        self._reader.join(1)  # a process left behind may hold it: then what has come so far
        return self._shown.decode(errors="replace")


def _read(start: Start, out: str, words: str) -> tuple[facts_of.Facts, dict[str, str]]:
    try:
        with open(out, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
        excluding = [line for line in lines if line.startswith("exclude\t")]  # one for each reason
        excluded = dict(line.rstrip("\n").split("\t", 2)[1:] for line in excluding)
        result = facts_of.parse("".join(lines[len(excluding) :]))
    except (OSError, ValueError):
        return _refused(start, f"its imports could not be watched: {_kind_of_end(words)}"), {}
    result.note_reads_in_c()
    if words and not excluded:
        # Not what: it may be the value of a variable, and this is kept in a file.
        result.refusals.append("it prints while it is imported")
    return result, excluded


_TOO_OLD = "unsnarl warm needs Python "
"""How launch.py begins to say that."""


def _kind_of_end(words: str) -> str:
    """Return the kind of the exception that ended a learning run, without what it says."""
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
    # A slow disk or a lack of memory may be the reason.
    result.expires = int(time.time()) + TRY_AGAIN_S
    return result


def _sign(start: Start) -> None:
    """Write into the lock who is starting, and end in order when asked to (``unsnarl.warm.managing.stop``)."""
    signal.signal(signal.SIGTERM, _end)
    line = f"{os.getpid()}\t{start.name}\n".encode(errors="surrogateescape")
    os.pwrite(3, line, 0)
    os.ftruncate(3, len(line))


def _end(signum: int, frame: object) -> None:  # noqa: ARG001
    """Leave by way of all that is to be ended and removed: the learning run and its directory."""
    # Asked again, as who waits for it does, it would leave in the middle of that.
    signal.signal(signum, signal.SIG_IGN)
    raise SystemExit(128 + signum)


def main(words: list[str]) -> None:
    """Become the server, or leave a record. Returns only where there is none to become."""
    start = Start(words)
    _sign(start)
    if os.fstat(2).st_size > LOG_BYTES:
        os.ftruncate(2, 0)  # the log; whoever writes to it appends
    facts = facts_of.load(start.stem + ".facts")
    news = start.stem + ".news"
    # With a refusal that still holds the client would not have started this.
    if facts is None or facts.refusals or facts.changed_file() is not None or os.path.exists(news):
        _learn_anew(start, facts, news)
        return
    if not _is_the_same(start, facts):
        return
    facts_of.mark(start.stem)
    runtime_directory.make_room(start.house)
    with contextlib.suppress(OSError):
        sweep.sweep(start.house)
    for fd in (3, 4):
        os.set_inheritable(fd, True)
    role = ["serve", start.exe, start.house, start.command_id, start.key_id, start.session, start.tty]
    os.umask(start.umask)
    argv = [start.python, *start.options, _LAUNCH, *role, start.kind, start.name]
    os.execve(start.python, argv, start.environment)


def _learn_anew(start: Start, facts: facts_of.Facts | None, news: str) -> None:
    """Learn what all keys have in common; returns only if the command is to run plainly."""
    if not os.path.exists(news):
        successor.forget(start.stem)
    fresh = learn(start)
    if facts is not None and facts.changed_file() is None and not facts.refusals and not fresh.refusals:
        fresh.join(facts)
    fresh.learner = _identity()
    facts_of.store(fresh, start.stem)
    if os.path.exists(news):
        os.unlink(news)
    if not fresh.refusals:
        _compute_key(start)


def _compute_key(start: Start) -> NoReturn:
    """Become the native client again, for learning may have changed what belongs to a key."""
    again = [start.exe, "--warm-serve", start.tty, start.kind, start.name, start.python, *start.options]
    os.umask(start.umask)
    os.execve(start.exe, again, start.environment)


def _is_the_same(start: Start, facts: facts_of.Facts) -> bool:
    """Say whether a server may start: in circumstances that nobody has looked at yet, look.

    An import may ask for more, or do more, on a terminal or with a variable set. What it asks for then belongs to
    all keys from now on; what it does may rule out a server here, and only here.
    """
    own = f"{start.house}/{start.key_id}.own"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(own)
    here = _circumstances()
    if here in facts.verified:
        return True
    found = facts if facts.learner == _identity() else learn(start, facts)
    # It may have been learned anew meanwhile.
    latest = facts_of.load(start.stem + ".facts") or facts
    if found.refusals:
        facts_of.write(f"{start.house}/{start.key_id}.rec", facts_of.client_text(found))
        latest.notes += [
            note for why in found.refusals if (note := f"plainly with some settings: {why}") not in latest.notes
        ]
        facts_of.store(latest, start.stem)
        return False
    if latest.join(found):
        facts_of.store(latest, start.stem)
        _compute_key(start)
    if found.imports_as(latest):
        latest.verified = [*latest.verified[1 - MOST_VERIFIED :], here]
        facts_of.store(latest, start.stem)
    else:
        facts_of.write(own, facts_of.dump(found))
    return True


def _circumstances() -> str:
    """Name what belongs to the key, but for the session."""
    head, _, rest = os.pread(4, os.fstat(4).st_size, 0).split(b"\n", 2)
    return hashlib.sha256(head + b"\n" + rest).hexdigest()


def _identity() -> str:
    """Name this process, whatever program it becomes: its number, and when it was started."""
    with open("/proc/self/stat", "rb") as file:
        return f"{os.getpid()}-{file.read().rpartition(b')')[2].split()[19].decode()}"


if __name__ == "__main__":
    main(sys.argv[1:])
