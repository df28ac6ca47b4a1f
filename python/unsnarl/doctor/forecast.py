"""Estimates what a pack would save at each start, from additional runs without one; a pack saves in three places.

- Finding: the time to find and read each module of the pack on the path, less the time to open the pack and read
  them from it. Each is measured in a process of its own, without running module bodies or garbage collection.
- Collecting: the time of garbage collections while a loader runs a module's body, measured by ``gc.callbacks`` in a
  run of the command. A pack disables the collector there; collections that a body requests (``gc.collect()``) remain.
- Ending: the time from the last exit function to the end of the process, less the same time if that function ends
  the process as a pack does.

Invariant: the same times give the same forecast; the median of a part's times counts. A part that could not be
measured (the command ends without exit functions, or must not be run so often) counts as no saving.
"""

from __future__ import annotations

import marshal
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from unsnarl.doctor import trial
from unsnarl.pack import container, recorder
from unsnarl.warm.worker import teardown

_ATTEMPTS = 3
"""Measurements of each part, of which the median counts."""

_QUICK_S = 1.0
"""Seconds; a command that takes longer is measured once."""

_PACKAGE = os.path.dirname(container.__file__)

# Finds and reads modules in an interpreter that has imported nothing of the command yet. Arguments: the list of
# modules, the script's directory, the directory of unsnarl.pack, and the pack or an empty text.
_LOOK = """
import gc, marshal, sys, time
from _frozen_importlib_external import PathFinder
gc.disable()
words, folder, here, pack = sys.argv[1:]
if not sys.flags.safe_path:
    sys.path[0] = folder
with open(words, "rb") as file:
    words = marshal.load(file)
def look(kept):
    if pack:
        package = sys.modules["_unsnarl_pack"] = type(sys)("_unsnarl_pack")
        package.__path__ = [here]
        import _unsnarl_pack.start
        if not _unsnarl_pack.start.install(pack):
            sys.exit(1)
    for name, path in words:
        spec = PathFinder.find_spec(name, path)
        if spec is not None and hasattr(spec.loader, "get_code"):
            kept.append(spec.loader.get_code(name))
words = [(name, path) for name, path in words if name not in sys.modules]
begin = time.perf_counter_ns()
look([])
took = time.perf_counter_ns() - begin
sys.stderr.write(f"\\n{took}\\n")
"""

# Runs the command and records two numbers: the time of collections in module bodies, and the time of the last exit
# function. Arguments: the file for the numbers, the path of the module by which a pack ends a process or an empty
# text, and the command.
_WITNESS = (
    """
import sys
def watch(notes, rule):
    import atexit, gc, posix, time
    from _frozen_importlib_external import SourceFileLoader
    body, pid, monotonic_ns = SourceFileLoader.exec_module.__code__, posix.getpid(), time.monotonic_ns
    teardown = None
    if rule:
        teardown = type(sys)("teardown")
        teardown.__file__ = rule
        SourceFileLoader("teardown", rule).exec_module(teardown)
    begun = spent = 0
    asked, collect = False, gc.collect
    def collected(phase, _):
        nonlocal begun, spent
        if phase == "start":
            begun = monotonic_ns()
        if phase == "start" or asked:
            return
        took, frame = monotonic_ns() - begun, sys._getframe(1)
        while frame is not None and frame.f_code is not body:
            frame = frame.f_back
        spent += 0 if frame is None else took
    def collect_as_asked(*words, **named):
        nonlocal asked
        asked = True
        try:
            return collect(*words, **named)
        finally:
            asked = False
    def end():
        if posix.getpid() != pid:
            return
        if not rule:
            gc.callbacks.remove(collected)
            gc.collect = collect
        said = b"%d %d" % (spent, monotonic_ns())
        file = posix.open(notes, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC, 0o600)
        posix.write(file, said)
        posix.close(file)
        if rule and teardown.is_unobserved():
            teardown.flush()
            gc.freeze()
    if not rule:
        gc.callbacks.append(collected)
        gc.collect = collect_as_asked
    atexit.register(end)
watch(*sys.argv[1:3])
del watch
kind, name = sys.argv[3:5]
del sys.argv[:4]
"""
    + recorder.RUNNING
)


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimated saving at each start in nanoseconds; a part is negative if the pack costs more."""

    finding_ns: int = 0
    collecting_ns: int = 0
    ending_ns: int = 0

    @property
    def saves_ns(self) -> int:
        """Return the sum, or 0 if the pack would cost time."""
        return max(self.finding_ns + self.collecting_ns + self.ending_ns, 0)


@dataclass(slots=True)
class Times:
    """The measured times in nanoseconds, one value per attempt."""

    by_path: list[int] = field(default_factory=list[int])
    by_pack: list[int] = field(default_factory=list[int])
    collecting: list[int] = field(default_factory=list[int])
    ends: list[int] = field(default_factory=list[int])
    hastened_ends: list[int] = field(default_factory=list[int])

    def forecast(self) -> Forecast:
        """Return the forecast that follows from the times."""
        return Forecast(
            _difference(self.by_path, self.by_pack),
            statistics.median_low(self.collecting) if self.collecting else 0,
            _difference(self.ends, self.hastened_ends),
        )


def _difference(without: Sequence[int], with_it: Sequence[int]) -> int:
    return statistics.median_low(without) - statistics.median_low(with_it) if without and with_it else 0


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is run several times.

    Attributes:
        kind: ``script`` or ``module``.
        name: its path or dotted name.
        arguments: the program's.
        flags: the interpreter's, as the script's first line has them.
    """

    kind: str
    name: str
    arguments: tuple[str, ...]
    flags: tuple[str, ...] = ()

    @property
    def interpreter(self) -> list[str]:
        """Return the words that start the interpreter."""
        return [sys.executable, *self.flags]

    @property
    def folder(self) -> str:
        """Return the first entry of the command's module path."""
        return os.path.dirname(self.name) if self.kind == "script" else os.getcwd()


def measure(
    command: Command, pack: str, environment: Mapping[str, str], limit_s: float, stock_s: float
) -> Forecast | None:
    """Return the forecast for a command and its pack, or None if the pack cannot be read.

    Args:
        command: the packed command.
        pack: the path of the pack.
        environment: of all processes.
        limit_s: seconds each of them may take.
        stock_s: seconds the command takes.
    """
    try:
        sought = _sought(pack)
    except (OSError, container.BadPack):
        return None
    times = Times()
    with tempfile.TemporaryDirectory(prefix="unsnarl-doctor-") as folder:
        words, witness = os.path.join(folder, "words"), os.path.join(folder, "witness.py")
        with open(words, "wb") as listed, open(witness, "w", encoding="utf-8") as written:
            listed.write(marshal.dumps(sought))
            written.write(_WITNESS)
        for _ in range(_ATTEMPTS if stock_s < _QUICK_S else 1):
            for found, used in ((times.by_path, ""), (times.by_pack, pack)):
                look = [*command.interpreter, "-c", _LOOK, words, command.folder, _PACKAGE, used]
                found.extend(_last_number(trial.run_command(look, environment, limit_s)))
            _witness(command, witness, times, lambda argv: trial.run_command(argv, environment, limit_s))
    return times.forecast() if times.by_path and times.by_pack else None


def _sought(pack: str) -> list[tuple[str, list[str] | None]]:
    """Return the pack's modules, each with its package's directory, or None for the module path."""
    with open(pack, "rb") as file:
        entries = container.read(memoryview(file.read()))[0]
    return [(name, [_base(entry)] if "." in name else None) for name, entry in entries.items()]


def _base(entry: tuple[object, ...]) -> str:
    return str(entry[container.PATH]).rsplit("/", 2 if entry[container.IS_PACKAGE] else 1)[0]


def _last_number(made: trial.Trial) -> list[int]:
    said = made.complaint.split()
    return [int(said[-1])] if made.status == 0 and said and said[-1].isdecimal() else []


def _witness(command: Command, witness: str, times: Times, run: Callable[[list[str]], trial.Trial]) -> None:
    """Run the command with each of the two ends, and add the recorded times."""
    for ends, used in ((times.ends, ""), (times.hastened_ends, teardown.__file__)):
        notes = f"{witness}.notes"
        run([*command.interpreter, witness, notes, used, command.kind, command.name, *command.arguments])
        ended_ns = time.monotonic_ns()
        try:
            with open(notes, encoding="ascii") as file:
                collecting_ns, last_ns = (int(word) for word in file.read().split())
        except (OSError, ValueError):
            continue
        os.remove(notes)
        ends.append(ended_ns - last_ns)
        if not used:
            times.collecting.append(collecting_ns)
