"""Second step of a start: learn the command if need be, then become its server.

``python -m unsnarl.warm.begin EXE HOUSE COMMAND_ID KEY_ID SESSION TTY KIND NAME PYTHON [options]``
with the key's lock at descriptor 3 and the key at descriptor 4.

Invariant: this process either becomes the server, or becomes the native
client again to compute a key that learning has changed, or leaves a record
that says why the command runs plainly.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile

from unsnarl.warm import facts as facts_of
from unsnarl.warm import house

# A module may drag another unwelcome one in; each round leaves out what failed.
ROUNDS = 6
# Seconds after which a learning run is given up: an import that waits for something.
LEARN_TIMEOUT_S = 120

_LAUNCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "launch.py")


class Start:
    """Hold the words of the command line, see the head of this file."""

    def __init__(self, words: list[str]) -> None:
        self.exe, self.house, self.command_id, self.key_id, self.session, self.tty = words[:6]
        self.kind, self.name, self.python = words[6:9]
        self.options = words[9:]
        # The caller's, for the imports of a server may ask for it; what is written here is nobody else's to read.
        self.umask = os.umask(0o077)

    @property
    def stem(self) -> str:
        """Return the path of the command's record, without suffix."""
        return os.path.join(self.house, self.command_id)


def learn(start: Start) -> facts_of.Facts:
    """Run the probe until nothing unwelcome is left, and return its facts."""
    wanted = _wanted(start)
    notes: list[str] = []
    result = facts_of.Facts()
    for attempt in range(ROUNDS):
        if attempt == ROUNDS - 1:
            # What its own file names, and nothing else.
            wanted = dict.fromkeys(wanted, "-")
        result, excluded = _probe(start, wanted)
        notes += [f"{module} is not imported ahead: {why}" for module, why in excluded.items()]
        if result.refusals or not excluded:
            break
        for module in excluded:
            wanted[module] = "-"
    else:
        result.refusals.append("its imports could not be told apart from what must not be imported ahead")
    result.command = start.name
    result.notes = [*notes, *result.notes]
    changed = result.changed_file()
    if changed is not None and not result.refusals:
        result.refusals.append(f"{changed} changes whenever the command is imported")
    return result


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


def _probe(start: Start, wanted: dict[str, str]) -> tuple[facts_of.Facts, dict[str, str]]:
    with tempfile.TemporaryDirectory(dir=start.house, prefix="learn-") as scratch:
        out, wish, said = (os.path.join(scratch, name) for name in ("out", "wish", "said"))
        with open(wish, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.writelines(f"{module}\t{path}\n" for module, path in wanted.items())
        argv = [start.python, *start.options, _LAUNCH, "probe", out, start.kind, start.name, wish]
        with open(said, "wb") as spoken:
            try:
                subprocess.run(
                    argv, stdin=subprocess.DEVNULL, stdout=spoken, stderr=spoken, timeout=LEARN_TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired:
                return _refused(start, f"importing it takes more than {LEARN_TIMEOUT_S} s"), {}
        with open(said, encoding="utf-8", errors="replace") as spoken_again:
            words = spoken_again.read()
        return _read(start, out, words)


def _read(start: Start, out: str, words: str) -> tuple[facts_of.Facts, dict[str, str]]:
    try:
        with open(out, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
        excluded = dict(line.rstrip("\n").split("\t", 2)[1:] for line in lines if line.startswith("exclude\t"))
        result = facts_of.parse("".join(lines[len(excluded) :]))
    except (OSError, ValueError):
        last = words.strip().rpartition("\n")[2]
        return _refused(start, f"its imports could not be watched: {last or 'the interpreter ended early'}"), {}
    if words and not excluded:
        result.refusals.append(f"it prints while it is imported: {words.strip().partition(chr(10))[0]}")
    return result, excluded


def _refused(start: Start, why: str) -> facts_of.Facts:
    result = facts_of.Facts()
    result.refusals.append(why)
    result.files = {path: facts_of.stamp_of(path) for path in (start.python, start.name) if path.startswith("/")}
    return result


def _sign(start: Start) -> None:
    """Write into the lock who is starting, and end in order when asked to (``unsnarl.warm.stop``)."""
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
    facts = facts_of.load(start.stem + ".facts")
    news = start.stem + ".news"
    if facts is None or facts.changed_file() is not None or os.path.exists(news):
        facts = learn(start)
        facts_of.store(facts, start.stem)
        if os.path.exists(news):
            os.unlink(news)
        if not facts.refusals:
            again = [start.exe, "--warm-serve", start.tty, start.kind, start.name, start.python, *start.options]
            os.umask(start.umask)
            os.execv(start.exe, again)
        return
    if facts.refusals:
        return
    house.make_room(start.house)
    for fd in (3, 4):
        os.set_inheritable(fd, True)
    role = ["serve", start.exe, start.house, start.command_id, start.key_id, start.session, start.tty]
    os.umask(start.umask)
    os.execv(start.python, [start.python, *start.options, _LAUNCH, *role, start.kind, start.name])


if __name__ == "__main__":
    main(sys.argv[1:])
