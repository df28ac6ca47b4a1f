"""The examination of a command: runs it in every way in turn and writes the verdict.

A round has one run of each way that is not decided yet, in random order: whichever way the load of the machine
changes, it favours no way. Rounds end when all ways are decided or the time is spent. The first stock run, the traced
run and the run under strace are additional and take part in no comparison. The effect on a thread is judged in pairs
of traced runs of their own, not by the run that named the thread: that run was selected for its long waits.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from unsnarl.doctor import comparison, importtime, packing, traced, trial, warmth
from unsnarl.doctor.packing import Packable, Packed
from unsnarl.doctor.trial import Trial, Way
from unsnarl.errors import HintedError
from unsnarl.free_threading import REASON, is_free_threaded
from unsnarl.run_settings import RunSettings
from unsnarl.statistics import ERROR, LOWER, decide, median_of
from unsnarl.trace import report, syscalls
from unsnarl.trace.findings.finding import Finding, duration
from unsnarl.trace.model import Process

NOISY = 0.25
FEWEST_RUNS = 2
"""Runs of each way, however little time there is."""

THREADS_ERROR = ERROR - comparison.WAYS_ERROR
"""The error of all verdicts on the effects on threads together."""

LEAST_EFFECT = 1.0
"""The least effect on a thread: its waits are halved. ``decide`` takes shares: before is after plus this share."""

TRACED_SHARE = 0.5
"""Time for the traced pairs, as a share of the time for the timed runs."""

LEAST_NOISE_S = 0.01
"""Runs count as noisy if their middle half is wider than this share of the median, and than this many seconds."""

CONTENTION = {
    *("convoy", "long-hold", "square", "cpu-bound", "hand-overs", "gil-waits"),
    *("contended-lock", "lock-waits", "futex-storm"),
}
"""Findings that name waits for the GIL or for locks, which the remedies can shorten."""

_NOT_HERE = " will not help here: "
"""In the words of a remedy between what of unsnarl does not help, and why."""

Progress = Callable[[str], None]


class Undiagnosable(HintedError):  # noqa: N818 -- said of the command
    """Say why the command cannot be examined."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The mean wait of one thread for the GIL, without and with a remedy, over pairs of traced runs.

    Attributes:
        thread: the thread's name.
        remedy: the way that was tried.
        before_ns: median without the remedy.
        after_ns: median with it.
        pairs: the number of pairs of traced runs.
        helps: whether the waits are at most half as long; None while the pairs leave it open.
    """

    thread: str
    remedy: str
    before_ns: float
    after_ns: float
    pairs: int
    helps: bool | None


@dataclass(slots=True)
class Diagnosis:
    """The result of an examination.

    Attributes:
        words: the command line after ``python``.
        status: its exit status.
        outcomes: stock first.
        findings: those of the traced run.
        effects: measured on the threads that the findings name.
        imports: from ``-X importtime``.
        calls: from strace.
        pack: the command with its pack, or why there is none.
        helps: whether a part of unsnarl helps.
        verdict: lines with the advice, or with the reason why nothing helps.
        enabled: the programs for which this environment is enabled; empty if it is not.
        left_out: why the scheduler was not tried and nothing was traced; empty if they were.
    """

    words: list[str]
    status: int
    outcomes: list[comparison.Outcome]
    findings: list[Finding] = field(default_factory=list[Finding])
    effects: list[Effect] = field(default_factory=list[Effect])
    imports: list[importtime.ImportTime] = field(default_factory=list[importtime.ImportTime])
    calls: syscalls.Syscalls = field(default_factory=syscalls.Syscalls)
    pack: Packed = field(default_factory=lambda: Packed([]))
    helps: bool = False
    verdict: list[str] = field(default_factory=list[str])
    enabled: str = ""
    left_out: str = ""


@dataclass(slots=True)
class Contestant:
    """A way, the function that runs it, its runs by round, and whether it takes part in further rounds."""

    way: Way
    run: Callable[[], Trial]
    made: list[Trial | None] = field(default_factory=list["Trial | None"])
    is_out: bool = False


def ways(words: Sequence[str], *, can_schedule: bool) -> list[Way]:
    """Return stock and the remedies that need no preparation."""
    command = " ".join(words)
    stock = Way("stock", f"python {command}")
    scheduler = Way("scheduler", f"unsnarl run {command}", RunSettings(main_pid=0))
    patched = RunSettings(main_pid=0, patch=True, scheduler=can_schedule)
    native = Way("native primitives", f"unsnarl run --patch {command}", patched)
    return [stock, scheduler, native] if can_schedule else [stock, native]


class Examination:
    """One command under examination."""

    def __init__(
        self,
        words: Sequence[str],
        command: Sequence[str],
        environment: Mapping[str, str],
        limit_s: float,
        progress: Progress,
        packable: Packable | None = None,
    ) -> None:
        """Take the command line after ``python``; each run may last ``limit_s`` seconds.

        ``command`` is the same command line as a console script with its arguments, or empty: only
        console scripts can be warm. ``packable`` is the part that can have a pack.
        """
        self._words = list(words)
        self._command = list(command)
        self._environment = dict(environment)
        self._limit_s = limit_s
        self._progress = progress
        self._packable = packable or Packable()
        self._left_out = f"{REASON} to schedule or to record" if is_free_threaded() else ""
        self._pack = Packed([])
        self._questions = 0
        self._random = random.SystemRandom()

    def diagnose(self, runs: int, budget_s: float) -> Diagnosis:
        """Run the command in all ways and return the diagnosis.

        Args:
            runs: the largest number of runs of each way.
            budget_s: seconds for all timed runs; each way has at least two runs. Traced pairs may take half as long.

        Raises:
            Undiagnosable: the command does not end by itself, or its exit status varies.
            OSError: the interpreter cannot be executed.
        """
        with (
            warmth.server(self._command, self._environment, self._limit_s) as warm,
            tempfile.TemporaryDirectory(prefix="unsnarl-doctor-") as folder,
        ):
            contestants = self._measure(runs, budget_s, warm, folder)
        stock = [trial for trial in contestants[0].made if trial is not None]
        questions = max(1, self._questions)
        outcomes = [
            comparison.outcome(each.way.name, each.way.what, each.made, stock, questions) for each in contestants
        ]
        diagnosis = Diagnosis(self._words, stock[0].status, outcomes, pack=self._pack, left_out=self._left_out)
        if not self._left_out:
            self._trace(diagnosis, runs, budget_s * TRACED_SHARE)
        self._time_imports(diagnosis)
        self._count_calls(diagnosis)
        conclude(diagnosis)
        return diagnosis

    def _measure(self, runs: int, budget_s: float, warm: list[str], folder: str) -> list[Contestant]:
        contestants = [Contestant(way, self._runner(way)) for way in ways(self._words, can_schedule=not self._left_out)]
        if warm:
            name, *rest = self._command
            way = Way("warm", f"unsnarl warm run {' '.join([Path(name).name, *rest])}")
            contestants.append(Contestant(way, lambda: self._run_command(warm)))
        self._progress("first run: stock")
        first = contestants[0].run()
        self._check_stock([first])
        contestants += self._packed(folder, first.wall_s)
        self._questions = len(contestants) - 1
        stock: list[Trial] = []
        ends = time.monotonic() + budget_s
        for number in range(runs):
            running = [each for each in contestants if not each.is_out]
            if number >= FEWEST_RUNS and (len(running) == 1 or time.monotonic() > ends):
                break
            self._random.shuffle(running)
            for each in running:
                self._progress(f"run {number + 1} of at most {runs}: {each.way.name}")
                self._run_once(each, first)
            stock = [trial for trial in contestants[0].made if trial is not None]
            self._drop_decided(contestants, stock)
        return [each for each in contestants if any(each.made)]

    def _run_once(self, contestant: Contestant, first: Trial) -> None:
        done = contestant.run()
        if contestant.way.name == "stock":
            self._check_stock([first, done])
            contestant.made.append(done)
        elif contestant.way.name == "warm" and done.status == warmth.NOT_WARM != first.status:
            contestant.made.append(None)  # its server is being replaced by one that has learned more: nothing has run
        else:
            contestant.made.append(done)
            contestant.is_out = comparison.ends_differently(done, first)  # one such run suffices to advise against it

    def _drop_decided(self, contestants: list[Contestant], stock: list[Trial]) -> None:
        """Take the ways that are decided out of further rounds."""
        for each in contestants[1:]:
            pairs = comparison.pairs_of(each.made, stock)
            if comparison.verdict(pairs, self._questions) != comparison.TOO_FEW:
                each.is_out = True

    def _packed(self, folder: str, stock_s: float) -> list[Contestant]:
        """Make a pack, after the first stock run has shown how long the command takes."""
        self._progress("recording a pack")
        self._pack = packed = packing.launcher(self._packable, folder, self._environment, self._limit_s, stock_s)
        return [Contestant(Way("pack", packed.what), lambda: self._run_command(packed.words))] if packed.words else []

    def _runner(self, way: Way) -> Callable[[], Trial]:
        return lambda: trial.run(way, self._words, self._environment, self._limit_s)

    def _run_command(self, command: list[str]) -> Trial:
        return trial.run_command(command, self._environment, self._limit_s)

    def _check_stock(self, made: list[Trial]) -> None:
        if made[-1].timed_out:
            raise Undiagnosable(
                f"the command did not end within {self._limit_s:g} s",
                "give it work that ends, or more time with `--limit`; for a server use `unsnarl trace`",
            )
        if made[-1].status != made[0].status:
            raise Undiagnosable(
                f"the command ended with status {made[-1].status}, and with {made[0].status} before",
                "each run must do the same: let the command, or a script around it, remove what a run leaves",
            )

    def _traced(self, name: str, *, scheduler: bool) -> list[Process]:
        self._progress(f"traced run: {name}")
        return traced.run(self._words, self._environment, self._limit_s, scheduler=scheduler)

    def _trace(self, diagnosis: Diagnosis, pairs: int, budget_s: float) -> None:
        stock = self._traced("stock", scheduler=False)
        diagnosis.findings = report.make(stock).findings if stock else []
        names = threads_that_wait(diagnosis.findings)
        if names:
            diagnosis.effects = self._effects(names, pairs, budget_s)

    def _effects(self, names: list[str], pairs: int, budget_s: float) -> list[Effect]:
        """Run traced pairs until the effect on each thread is decided, or the time is spent."""
        waits: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        ends = time.monotonic() + budget_s
        for number in range(pairs):
            before, after = self._traced_pair(number)
            for name, made in waits.items():
                old, new = mean_wait(before, name), mean_wait(after, name)
                if old is not None and new is not None:
                    made.append((old, new))
            effects = [effect_of(name, made, len(names)) for name, made in waits.items() if made]
            is_decided = len(effects) == len(names) and all(effect.helps is not None for effect in effects)
            if is_decided or time.monotonic() > ends:
                break
        return [effect_of(name, made, len(names)) for name, made in waits.items() if made]

    def _traced_pair(self, number: int) -> tuple[list[Process], list[Process]]:
        """Trace the command once without and once with the scheduler, in random order."""
        made: dict[bool, list[Process]] = {}
        for scheduler in self._random.sample((False, True), 2):
            name = f"pair {number + 1}, {'scheduler' if scheduler else 'stock'}"
            made[scheduler] = self._traced(name, scheduler=scheduler)
        return made[False], made[True]

    def _time_imports(self, diagnosis: Diagnosis) -> None:
        self._progress("imports")
        way = Way("imports", "", python_options=("-X", "importtime"))
        made = trial.run(way, self._words, self._environment, self._limit_s)
        diagnosis.imports = importtime.parse(made.complaint.splitlines())

    def _count_calls(self, diagnosis: Diagnosis) -> None:
        strace = syscalls.strace()
        if strace is None:
            diagnosis.calls = syscalls.Syscalls(reason="Not counted: strace is not installed, or not in PATH.")
            return
        self._progress("system calls")
        with tempfile.NamedTemporaryFile(prefix="unsnarl-doctor-", suffix=".strace") as stream:
            command = [strace, *syscalls.OPTIONS, "-o", stream.name, sys.executable, *self._words]
            made = trial.run_command(command, self._environment, max(self._limit_s * 4, 30.0))
            with open(stream.name, encoding="utf-8", errors="replace") as lines:
                counted = syscalls.counted(lines, {})
        if not counted.rows:
            why = made.complaint.strip().splitlines()[-1:] or ["it wrote nothing"]
            counted = syscalls.Syscalls(reason=f"Not counted: strace could not trace here: {why[0]}")
        diagnosis.calls = counted


def effect_of(thread: str, waits: Sequence[tuple[float, float]], questions: int) -> Effect:
    """Judge the effect of the scheduler on one thread, from its mean waits without and with it in each pair."""
    decision = decide(waits, LEAST_EFFECT, THREADS_ERROR / questions)
    before_ns, after_ns = median_of([old for old, _ in waits]), median_of([new for _, new in waits])
    helps = None if decision is None else decision == LOWER
    return Effect(thread, "scheduler", before_ns or 0.0, after_ns or 0.0, len(waits), helps)


def threads_that_wait(findings: Sequence[Finding]) -> list[str]:
    """Return the names of the threads that wait for the GIL, by findings that a scheduler may help."""
    return list(dict.fromkeys(one.thread for one in findings if one.kind in ("convoy", "square") and one.thread))


def mean_wait(processes: list[Process], name: str) -> float | None:
    """Return the mean wait for the GIL of the threads with a name; None without such a thread."""
    threads = [thread for process in processes for thread in process.threads if thread.label == name]
    waits = sum(thread.waits for thread in threads)
    return sum(thread.waiting_ns for thread in threads) / max(waits, 1) if threads else None


def conclude(diagnosis: Diagnosis) -> None:
    """Write the verdict: which remedy helps by how much, or why none does."""
    lines = _disbelieve(diagnosis)
    lines += [line for outcome in diagnosis.outcomes[1:] for line in _of_way(outcome, diagnosis.status)]
    lines += [_of_thread(effect) for effect in diagnosis.effects if effect.helps]
    diagnosis.helps = any(outcome.verdict == comparison.FASTER for outcome in diagnosis.outcomes[1:]) or any(
        effect.helps for effect in diagnosis.effects
    )
    undecided = [outcome for outcome in diagnosis.outcomes[1:] if outcome.verdict == comparison.TOO_FEW]
    still_open = _still_open(diagnosis.effects, undecided)
    if still_open:
        lines.append(f"{still_open} For a verdict, give more time with `--seconds` and `--runs`.")
    elif not diagnosis.helps:
        lines.append(_why_not(diagnosis))
    diagnosis.verdict = [*lines, *_doubts(diagnosis)]


def _why_not(diagnosis: Diagnosis) -> str:
    """Return why nothing helps: the reason of the first finding that gives one."""
    advice = (finding.remedy.what for finding in diagnosis.findings if finding.remedy and not finding.remedy.helps)
    reasons = (what.partition(_NOT_HERE)[2] for what in advice if _NOT_HERE in what)
    return f"unsnarl{_NOT_HERE}{next(reasons, None) or _no_reason(diagnosis)}"


def _still_open(effects: Sequence[Effect], undecided: Sequence[comparison.Outcome]) -> str:
    """Return which ways and which effects on threads have too few runs for a verdict; empty if none has."""
    parts = [f"{outcome.name} ({outcome.ratio:.2f} ×, {outcome.runs} runs)" for outcome in undecided]
    parts += [
        f"{effect.remedy} for thread `{effect.thread}` (its mean wait for the GIL {duration(effect.before_ns)} → "
        f"{duration(effect.after_ns)}, {effect.pairs} {'pair' if effect.pairs == 1 else 'pairs'} of traced runs)"
        for effect in effects
        if effect.helps is None
    ]
    return f"Too few runs to judge: {', '.join(parts)}." if parts else ""


def _of_way(outcome: comparison.Outcome, status: int) -> list[str]:
    """Return the advice on one way; none if the way changes nothing, or is not decided."""
    if outcome.verdict == comparison.FASTER:
        return [f"{outcome.name} helps: {outcome.ratio:.2f} × as fast as stock. `{outcome.what}`"]
    if outcome.verdict == comparison.SLOWER:
        return [f"{outcome.name} costs time here: {outcome.ratio:.2f} × as fast as stock; leave it out"]
    if outcome.verdict == comparison.FAILED:
        ended = f"{outcome.name} breaks the command, which ended {outcome.failure} and not with status {status}"
        return [f"{ended}: leave it out, and please report it. `{outcome.what}`"]
    return []


def _of_thread(effect: Effect) -> str:
    return (
        f"{effect.remedy} helps thread `{effect.thread}`: its mean wait for the GIL falls from "
        f"{duration(effect.before_ns)} to {duration(effect.after_ns)}, over {effect.pairs} pairs of traced runs"
    )


def _disbelieve(diagnosis: Diagnosis) -> list[str]:
    """Turn gains into noise if no thread waited, and return lines that say so.

    Without contention the scheduler has no effect, and native primitives can save only
    processor time.
    """
    kinds = {finding.kind for finding in diagnosis.findings}
    if "no-gil-contention" not in kinds or kinds & CONTENTION:
        return []
    stock, lines = diagnosis.outcomes[0], list[str]()
    for index, outcome in enumerate(diagnosis.outcomes):
        is_cheaper = outcome.name != "scheduler" and outcome.cpu_s < (1 - comparison.LEAST) * stock.cpu_s
        is_ours = outcome.name in ("scheduler", "native primitives")
        if is_ours and outcome.verdict == comparison.FASTER and not is_cheaper:
            diagnosis.outcomes[index] = replace(outcome, verdict=comparison.SAME)
            lines.append(
                f"{outcome.name}: {outcome.ratio:.2f} × as fast as stock, which is noise: no thread waited "
                "for the GIL or for a lock, so the difference comes from other load on the machine"
            )
    return lines


def _doubts(diagnosis: Diagnosis) -> list[str]:
    """Return a line that says so if the runs of a way differ much."""
    noisy = [
        outcome.name
        for outcome in diagnosis.outcomes
        if outcome.runs > 2 and outcome.high_s - outcome.low_s > max(NOISY * outcome.wall_s, LEAST_NOISE_S)
    ]
    if not noisy:
        return []
    return [f"The runs differ much among themselves ({', '.join(noisy)}): repeat this on a less busy machine."]


def _no_reason(diagnosis: Diagnosis) -> str:
    stock = diagnosis.outcomes[0]
    if stock.cpu_s < 0.5 * stock.wall_s:
        return "the program waits for something outside of the process for most of its time"
    return "the program computes in one thread for most of its time"
