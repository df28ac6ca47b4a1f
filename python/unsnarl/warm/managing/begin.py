"""Second step of a start: learns the command if necessary, then becomes its server.

``python -m unsnarl.warm.managing.begin EXE DIRECTORY COMMAND_ID KEY_ID SESSION TTY KIND NAME PYTHON [options]``
with the key's lock at descriptor 3 and the key at descriptor 4. DIRECTORY is the runtime directory.

Invariant: this process ends in one of three ways. It becomes the server by exec; it becomes the native client by exec,
to compute a key that learning has changed; or it writes a record that says why the command runs plainly.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import signal
import sys
from typing import NoReturn

from unsnarl.warm import changed, ledger
from unsnarl.warm import facts as facts_of
from unsnarl.warm.managing import plain_call, runtime_directory, sweep
from unsnarl.warm.managing.start import LAUNCH, Start
from unsnarl.warm.serving import successor

# Bytes after which the log is emptied: the runtime directory usually is in memory.
LOG_BYTES = 1 << 20
# Most circumstances that are remembered; older ones are watched again.
MOST_VERIFIED = 256


def _learned(start: Start, known: facts_of.Facts | None = None, *, is_quick: bool = False) -> facts_of.Facts:
    """Learn the command. What that needs is loaded only here: most starts need none of it."""
    from unsnarl.warm.managing import learner

    return learner.learn(start, known, is_quick=is_quick)


def _is_to_compare(start: Start, facts: facts_of.Facts) -> bool:
    """Return whether a quick learning run is not enough here: a doubtful value is another one, or values differed."""
    if facts.is_unproven and not os.path.exists(start.stem + facts_of.VALUES):
        return True
    return any(start.digest(name) != digest for name, digest in facts.doubtful.items())


def _sign(start: Start) -> None:
    """Write process number and command into the lock, and handle SIGTERM (``unsnarl.warm.managing.stop``)."""
    signal.signal(signal.SIGTERM, _end)
    line = f"{os.getpid()}\t{start.name}\n".encode(errors="surrogateescape")
    os.pwrite(3, line, 0)
    os.ftruncate(3, len(line))


def _end(signum: int, frame: object) -> None:  # noqa: ARG001
    """Exit by an exception, so that the learning run is ended and its directory removed."""
    # `stop` repeats the signal, which must not interrupt that.
    signal.signal(signum, signal.SIG_IGN)
    raise SystemExit(128 + signum)


def main(words: list[str]) -> None:
    """Become the server, or write a record. Returns only if the command runs plainly."""
    start, caller = Start(words), plain_call.caller(3)
    _sign(start)
    if start.is_bound and caller:
        ledger.note_call(start.stem, plain_call.measure_ms(caller))
    ledger.shorten(start.stem)
    if os.fstat(2).st_size > LOG_BYTES:
        os.ftruncate(2, 0)  # the log, to which all processes append
    facts = facts_of.load(start.stem + ".facts")
    news = start.stem + ".news"
    # A client starts this only if no refusal holds.
    if facts is None or _is_outdated(facts, start.stem) or _is_to_learn_news(facts, news):
        _learn_again(start, facts, news, is_quick=_may_be_quick(start, facts))
        ledger.note_failed(start.stem, start.environment)
    elif _is_to_compare(start, facts):
        _learn_again(start, facts, news)
        ledger.note_failed(start.stem, start.environment)
    elif not _is_the_same(start, facts):
        ledger.note_failed(start.stem, start.environment)
    else:
        _serve(start, facts)


def _is_outdated(facts: facts_of.Facts, stem: str) -> bool:
    """Return whether a file has changed, or runs have changed what imports have read before them."""
    is_changed = bool(facts.refusals) or facts.changed_file() is not None
    return is_changed or bool(changed.news(stem, facts.changed_size, facts.late))


def _is_to_learn_news(facts: facts_of.Facts, news: str) -> bool:
    """Return whether modules of earlier runs are to be learned here.

    In circumstances that were not watched yet, an import may do what rules the command out, for all others as well. A
    server's successor, which is given no key, starts in those of the server.
    """
    return os.path.exists(news) and (not facts.verified or not _has_key() or _circumstances() in facts.verified)


def _serve(start: Start, facts: facts_of.Facts) -> NoReturn:
    facts_of.mark(start.stem)
    runtime_directory.make_room(start.runtime_directory)
    with contextlib.suppress(OSError):
        sweep.sweep(start.runtime_directory)
    for fd in (3, 4):
        os.set_inheritable(fd, True)
    role = ["serve", start.exe, start.runtime_directory, start.command_id, start.key_id, start.session, start.tty]
    os.umask(start.umask)
    # A server whose values are compared with those of the learning run has sets in the same order.
    is_seeded = facts.is_unproven and not start.has_seed
    environ = {**start.environment, **({b"PYTHONHASHSEED": b"%d" % facts.seed} if is_seeded else {})}
    argv = [start.python, *start.options, LAUNCH, *role, start.kind, start.name, "given" if is_seeded else "own"]
    os.execve(start.python, argv, environ)


def _may_learn(start: Start) -> bool:
    """Take the command's own lock, which is held until this process serves or ends; return whether it was free.

    Another process learns the command otherwise. What it finds will change the key, so this start ends: the next
    call starts a server if one is still missing. The lock passes on to the native client (:func:`_compute_key`), which
    drops it once it has the lock of the new key.
    """
    if start.environment.get(b"UNSNARL_WARM_FROZEN"):
        return False
    lock = os.open(start.stem + ".learn", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    start.learning = lock
    return True


def _may_be_quick(start: Start, facts: facts_of.Facts | None) -> bool:
    """Return whether one learning run will do: calls have to pay for it, and it loses nothing that was found out."""
    return start.is_bound and (facts is None or not any(one.was_set for one in facts.kept.values()))


def _learn_again(start: Start, facts: facts_of.Facts | None, news: str, *, is_quick: bool = False) -> None:
    """Learn the facts that all keys share. Returns only if the command runs plainly."""
    if not _may_learn(start):
        return
    if not os.path.exists(news):
        successor.forget(start.stem)
    if is_quick:
        start.seed = int.from_bytes(os.urandom(4), "little")  # the server's as well, so nobody may know it
    fresh = _learned(start, is_quick=is_quick)
    if fresh.refusals and _is_directory_gone():
        return
    if facts is not None and facts.changed_file() is None and not facts.refusals and not fresh.refusals:
        facts.settle(fresh)
        # Circumstances are watched again, and add theirs: what only left modules have read too early ends no server.
        late = fresh.late
        fresh.join(facts)
        fresh.late = late
    fresh.learner = _identity()
    facts_of.store(fresh, start.stem)
    if os.path.exists(news):
        os.unlink(news)
    if not fresh.refusals:
        _compute_key(start)


def _is_directory_gone() -> bool:
    """Return whether the caller's directory was removed, as tests do: what an import says then is no verdict."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _compute_key(start: Start) -> NoReturn:
    """Become the native client again: learning may have changed what belongs to a key."""
    again = [start.exe, "--warm-serve", start.tty, start.kind, start.name, start.python, *start.options]
    os.umask(start.umask)
    os.set_inheritable(start.learning, True)
    os.execve(start.exe, again, start.environment)


def _is_the_same(start: Start, facts: facts_of.Facts) -> bool:
    """Return whether a server may start; in circumstances that were not watched yet, watch the imports first.

    An import may read or do more on a terminal, or with a variable set. Facts that it reads belong to all keys
    from now on; its effects may rule out a server, for this key only.
    """
    own = f"{start.runtime_directory}/{start.key_id}.own"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(own)
    here = _circumstances()
    if here in facts.verified:
        return True
    if not _may_learn(start):
        return False
    start.seed = facts.seed
    found = facts if facts.learner == _identity() else _learned(start, facts)
    if found.refusals and _is_directory_gone():
        return False
    # The command may have been learned again meanwhile.
    latest = facts_of.load(start.stem + ".facts") or facts
    if found.refusals:
        facts_of.refuse(f"{start.runtime_directory}/{start.key_id}", found)
        latest.notes += [
            note for why in found.refusals if (note := f"runs plainly with some settings: {why}") not in latest.notes
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


def _has_key() -> bool:
    try:
        os.fstat(4)
    except OSError:
        return False
    return True


def _circumstances() -> str:
    """Return a digest of the key without the session."""
    head, _, rest = os.pread(4, os.fstat(4).st_size, 0).split(b"\n", 2)
    return hashlib.sha256(head + b"\n" + rest).hexdigest()


def _identity() -> str:
    """Return number and start time of this process, which stay the same across exec."""
    with open("/proc/self/stat", "rb") as file:
        return f"{os.getpid()}-{file.read().rpartition(b')')[2].split()[19].decode()}"


if __name__ == "__main__":
    main(sys.argv[1:])
