"""The ledger of a command: what learning and servers have spent, and what served calls have saved, in processor time.

``COMMAND.ledger`` has lines of words, appended by starts and servers, and read by the client
(crates/client/src/server/account.rs), which decides by them whether the next start may be paid (``economy.rs`` there).

| line | meaning |
|---|---|
| ``spent MS`` | a start that became a server, with the learning runs before it, has taken this long |
| ``asked MS`` | the same, if the user has asked for it by ``warm start`` or ``warm learn``: nothing has to pay for it |
| ``failed MS`` | a start that became no server has taken this long: spent as well, but no measure of the next start |
| ``tried MS`` | the same, if the user has asked for it |
| ``plain MS`` | a plain call takes about this long: its interpreter's start and its imports |
| ``call MS`` | a plain call was seen to take no longer than this |
| ``saved MS CALLS`` | so many served calls, and what they have saved in all; less than nothing counts as 0 |

A plain call counts as what the middle one of the last :data:`FEW` calls has taken, and as no more than the last
``plain``: of many, one is aborted as soon as it has begun.

Invariant: a line is written by one ``write`` at the end of the file, so no lock is needed; and a plain call is
not taken for longer than it usually is.
"""

from __future__ import annotations

import os

from .dataclass import dataclass

SUFFIX = ".ledger"
# Bytes after which a start sums the lines up.
LONG = 1 << 13
# Calls that count: the last ones.
FEW = 5
# Milliseconds that a server has saved at least, and share of what it has noted already, before it notes more.
LEAST_MS, GROWTH = 500, 0.1
# Milliseconds of an interpreter's start, without `site`; the least that was seen on any machine here.
INTERPRETER_MS = 8
# The variable by which a start knows that the user has asked for it; it is no part of a key.
ASKED = b"UNSNARL_WARM_ASKED"


@dataclass(frozen=True)
class Sums:
    """A ledger, summed up: times in milliseconds of processor time."""

    spent_ms: int = 0
    last_ms: int = 0
    """What the last start has taken that became a server: what the next one is taken for."""
    is_last_asked: bool = False
    """Whether the user had asked for that one."""
    failed_ms: int = 0
    """Of what was spent, what starts have taken that became no server."""
    saved_ms: int = 0
    calls: int = 0
    """Served ones."""
    plain_ms: int = 0
    """What a plain call takes at most, 0 if it is unknown."""
    asked_ms: int = 0
    calls_ms: tuple[int, ...] = ()
    """What the last plain calls that were measured have taken."""

    @property
    def call_ms(self) -> int:
        """The middle one of the plain calls, or the lesser one of two; 0 if none was measured."""
        return sorted(self.calls_ms)[(len(self.calls_ms) - 1) // 2] if self.calls_ms else 0

    def affords(self) -> bool:
        """Return whether what was saved pays for one more start."""
        return self.saved_ms >= self.spent_ms + self.last_ms

    def repays(self, late: int, modules: int) -> bool:
        """Return whether runs have spent as much on imports of their own as learning those again takes.

        ``late`` is how many modules they have imported themselves since the command was learned, counted in each run
        again, and ``modules`` how many a server has ahead, which take the time of a plain call. A command that is
        learned again at that moment has cost at most twice what was necessary, whatever comes (Karlin et al.,
        Competitive snoopy caching, 1988: to rent skis, or to buy them).
        """
        return late * self.plain_ms >= self.last_ms * max(1, modules)


def parse(text: str) -> Sums:
    """Sum up the lines; those that are not understood are left out."""
    totals = dict.fromkeys(("spent", "failed", "asked", "tried", "saved", "served"), 0)
    last = plain = 0
    is_last_asked = False
    measured: list[int] = []
    for what, ms, calls in _rows(text):
        if what in totals:
            totals[what] += ms
        if what in ("spent", "asked"):
            last, is_last_asked = ms, what == "asked"
        elif what == "saved":
            totals["served"] += calls
        elif what == "plain":
            plain = ms
        elif what == "call":
            measured.append(ms)
    return Sums(
        spent_ms=totals["spent"] + totals["failed"],
        last_ms=last,
        is_last_asked=is_last_asked,
        failed_ms=totals["failed"],
        saved_ms=totals["saved"],
        calls=totals["served"],
        plain_ms=plain,
        asked_ms=totals["asked"] + totals["tried"],
        calls_ms=tuple(measured[-FEW:]),
    )


def _rows(text: str) -> list[tuple[str, int, int]]:
    """Return word, time and number of calls of each line that is understood."""
    found: list[tuple[str, int, int]] = []
    for line in text.splitlines():
        what, *numbers = line.split(" ")
        if len(numbers) > (what == "saved") and all(number.isdecimal() for number in numbers):
            found.append((what, int(numbers[0]), int(numbers[-1])))
    return found


def read(stem: str) -> Sums:
    """Return the sums of a command; ``stem`` is the path of its files, without suffix."""
    return parse(_text(stem))


def note(stem: str, *lines: str) -> None:
    """Append lines. No failure matters: the next start comes later, or earlier by a fraction of the share."""
    try:
        fd = os.open(stem + SUFFIX, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, "".join(f"{line}\n" for line in lines).encode())
        finally:
            os.close(fd)
    except OSError:
        pass


def note_failed(stem: str, environment: dict[bytes, bytes]) -> None:
    """Note what this process has taken so far; it becomes no server."""
    note(stem, f"{'tried' if environment.get(ASKED) else 'failed'} {used_ms()}")


def note_call(stem: str, ms: int | None) -> None:
    """Note how long a plain call has taken, if that was seen."""
    if ms is not None:
        note(stem, f"call {ms}")


def shorten(stem: str) -> None:
    """Sum the lines up once there are many. A line that is appended at that moment may be lost."""
    text = _text(stem)
    if len(text) < LONG:
        return
    sums = parse(text)
    last_ms, word = sums.last_ms, "asked" if sums.is_last_asked else "spent"
    rest = {"failed": sums.failed_ms, "spent": sums.spent_ms - sums.failed_ms, "tried": sums.asked_ms}
    rest["tried" if sums.is_last_asked else "spent"] -= last_ms
    rows = [f"{what} {max(0, ms)}" for what, ms in rest.items()]
    rows += [f"{word} {last_ms}", f"saved {sums.saved_ms} {sums.calls}"]
    rows += [f"plain {sums.plain_ms}"] if sums.plain_ms else []
    rows += [f"call {ms}" for ms in sums.calls_ms]
    unfinished = f"{stem}{SUFFIX}.{os.getpid()}"
    try:
        with open(unfinished, "w") as file:
            file.writelines(f"{row}\n" for row in rows)
        os.rename(unfinished, stem + SUFFIX)
    except OSError:
        pass  # it stays as long as it is


def used_ms() -> int:
    """Return the processor time of this process, through all its programs, and of its children that have ended."""
    return round(1000 * sum(os.times()[:4]))


class Serving:
    """What one server has spent and saved, to be noted from time to time."""

    def __init__(self, stem: str, imports_ms: int, environment: dict[bytes, bytes]) -> None:
        self._stem = stem
        estimate_ms = imports_ms + INTERPRETER_MS
        self._plain_ms = min(estimate_ms, read(stem).call_ms or estimate_ms)
        self._begun_ms = _own_ms()
        self._noted_ms, self._noted_calls = 0, 0
        note(stem, f"{'asked' if environment.get(ASKED) else 'spent'} {used_ms()}", f"plain {estimate_ms}")

    def note(self, calls: int, is_last: bool = False) -> None:
        """Note what so many calls have saved, if it is much more than was noted, or the server ends."""
        if calls == self._noted_calls:
            return
        saved_ms = max(0, calls * self._plain_ms - (_own_ms() - self._begun_ms))
        more_ms = saved_ms - self._noted_ms
        if more_ms >= max(LEAST_MS, GROWTH * self._noted_ms) or (is_last and more_ms >= 0):
            note(self._stem, f"saved {more_ms} {calls - self._noted_calls}")
            self._noted_ms, self._noted_calls = saved_ms, calls


def _own_ms() -> int:
    """Return the processor time of this process alone: its forks of spares, not the commands in them."""
    return round(1000 * sum(os.times()[:2]))


def _text(stem: str) -> str:
    try:
        with open(stem + SUFFIX, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
