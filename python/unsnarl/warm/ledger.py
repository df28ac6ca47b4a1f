"""The ledger of a command: what learning and servers have spent, and what served calls have saved, in processor time.

``COMMAND.ledger`` has lines of words, appended by starts and servers, and read by the client
(crates/client/src/server/account.rs), which decides by them whether the next start may be paid (``economy.rs`` there).

| line | meaning |
|---|---|
| ``spent MS`` | a start, with the learning runs before it, has taken this long, whether or not it became a server |
| ``asked MS`` | the same, if the user has asked for it by ``warm start`` or ``warm learn``: nothing has to pay for it |
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
    """The last line of what was spent: what the next start is taken for."""
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


def parse(text: str) -> Sums:
    """Sum up the lines; those that are not understood are left out."""
    spent = last = saved = calls = plain = asked = 0
    measured: list[int] = []
    for line in text.splitlines():
        what, *numbers = line.split(" ")
        if not numbers or not all(number.isdecimal() for number in numbers):
            continue
        ms = int(numbers[0])
        if what == "spent":
            spent, last = spent + ms, ms
        elif what == "asked":
            asked, last = asked + ms, ms
        elif what == "plain":
            plain = ms
        elif what == "call":
            measured.append(ms)
        elif what == "saved" and len(numbers) > 1:
            saved, calls = saved + ms, calls + int(numbers[1])
    return Sums(spent, last, saved, calls, plain, asked, tuple(measured[-FEW:]))


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


def note_spent(stem: str, environment: dict[bytes, bytes]) -> None:
    """Note what this process has taken so far; it becomes no server."""
    note(stem, f"{_account(environment)} {used_ms()}")


def note_call(stem: str, ms: int | None) -> None:
    """Note how long a plain call has taken, if that was seen."""
    if ms is not None:
        note(stem, f"call {ms}")


def _account(environment: dict[bytes, bytes]) -> str:
    return "asked" if environment.get(ASKED) else "spent"


def shorten(stem: str) -> None:
    """Sum the lines up once there are many. A line that is appended at that moment may be lost."""
    text = _text(stem)
    if len(text) < LONG:
        return
    sums = parse(text)
    spent, asked = sums.spent_ms, sums.asked_ms
    if sums.last_ms <= spent:
        rows = [f"asked {asked}", f"spent {spent - sums.last_ms}", f"spent {sums.last_ms}"]
    else:
        rows = [f"spent {spent}", f"asked {max(0, asked - sums.last_ms)}", f"asked {sums.last_ms}"]
    rows.append(f"saved {sums.saved_ms} {sums.calls}")
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
        note(stem, f"{_account(environment)} {used_ms()}", f"plain {estimate_ms}")

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
