"""A pack for the time of the examination, where the command can have one.

What a pack should save is predicted from its own list of modules: what it takes to find
and read each of them by the path, less what it takes by the pack, both in a process of
their own, and without running a module's body.

Invariant: nothing is left behind but what the command itself leaves.
"""

from __future__ import annotations

import os
import shlex
import statistics
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass

from unsnarl.doctor import trial

LONGEST_S = 10.0
"""A pack is not tried on a command that takes longer: its start is not what matters there."""

_RECORDING_S = 30.0
"""What recording and compiling may take, besides the command itself."""

_ATTEMPTS = 3
"""Of which the median counts."""

# Runs in an interpreter that has imported nothing of the command yet.
_LOOK = """
import json, sys, time
from importlib.machinery import PathFinder
from unsnarl.pack import container
with open(sys.argv[1], "rb") as file:
    entries, area, *_ = container.read(memoryview(file.read()))
words = [(n, e[container.PATH], e) for n, e in entries.items() if e[container.KIND] == "c" and n not in sys.modules]
def by_path(name, path, entry):
    parts = 2 if entry[container.IS_PACKAGE] else 1
    spec = PathFinder.find_spec(name, [path.rsplit("/", parts)[0]] if "." in name else None)
    if spec is not None and hasattr(spec.loader, "get_code"):
        spec.loader.get_code(name)
def by_pack(name, path, entry):
    container.code_of(entry, area)
def timed(look):
    begin = time.perf_counter_ns()
    for word in words:
        look(*word)
    return time.perf_counter_ns() - begin
print(timed(by_path) - timed(by_pack), file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Packed:
    """A command with its pack, or why it has none.

    Attributes:
        words: the launcher and the arguments; empty if there is no pack.
        what: what a user would call.
        saves_ns: prediction, or None.
        reason: why there is no pack; else empty.
    """

    words: list[str]
    what: str = ""
    saves_ns: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Packable:
    """What of a command line can be packed: what ``unsnarl pack`` takes, and the arguments.

    Attributes:
        target: the path of a console script, or ``-m`` and a module; empty if it is neither.
        arguments: the program's.
    """

    target: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()


def launcher(
    packable: Packable, directory: str, environment: Mapping[str, str], limit_s: float, stock_s: float
) -> Packed:
    """Pack a command into a directory, with a recording run of its own arguments.

    Args:
        packable: the command.
        directory: an empty one.
        environment: of all processes.
        limit_s: seconds the command may take.
        stock_s: seconds it took without.
    """
    unsnarl = os.path.join(sysconfig.get_path("scripts"), "unsnarl")
    if not packable.target or not os.access(unsnarl, os.X_OK):
        return Packed([], reason="only a console script or `-m MODULE` has a pack")
    if stock_s > LONGEST_S:
        return Packed([], reason=f"the command takes more than {LONGEST_S:g} s, its start is little of that")
    name = os.path.basename(packable.target[-1])
    start, pack = os.path.join(directory, name), os.path.join(directory, f"{name}.pack")
    arguments = shlex.join(packable.arguments)
    words = [unsnarl, "pack", *packable.target, "-o", pack, "--launcher", start, "--with", arguments]
    made = trial.run_command(words, environment, limit_s + _RECORDING_S)
    if made.status != 0:
        why = [line.removeprefix("error: ") for line in made.complaint.splitlines() if line.startswith("error: ")]
        return Packed([], reason=why[-1] if why else "`unsnarl pack` failed")
    return Packed([start, *packable.arguments], _what(packable, name), _saving_ns(pack, environment, limit_s))


def _what(packable: Packable, name: str) -> str:
    recorded = shlex.quote(shlex.join(packable.arguments))
    target = " ".join([*packable.target[:-1], name])
    return f"unsnarl pack {target} -o {name}.pack --with {recorded}; {shlex.join([f'./{name}', *packable.arguments])}"


def _saving_ns(pack: str, environment: Mapping[str, str], limit_s: float) -> int | None:
    """Predict what a pack saves at each start; None where that could not be measured."""
    savings: list[int] = []
    for _ in range(_ATTEMPTS):
        made = trial.run_command([sys.executable, "-c", _LOOK, pack], environment, limit_s)
        try:
            savings.append(int(made.complaint.split()[-1]))
        except (ValueError, IndexError):
            return None
    return max(statistics.median_low(savings), 0) or None
