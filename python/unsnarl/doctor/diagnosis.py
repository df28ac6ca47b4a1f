"""The examination of a command: runs it in every way in turn and writes the verdict.

Ways alternate, so that a machine that slows down affects all of them alike. The traced run and the
run under strace are additional and not timed.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from unsnarl.doctor import comparison, importtime, packing, trial, warmth
from unsnarl.doctor.packing import Packable, Packed
from unsnarl.doctor.trial import Trial, Way
from unsnarl.errors import HintedError
from unsnarl.run_settings import RunSettings
from unsnarl.trace import recordings, report, syscalls
from unsnarl.trace.findings.finding import Finding
from unsnarl.trace.model import Process

TRACE_CHUNKS = 4096

NOISY = 0.25
LEAST_NOISE_S = 0.01
"""Runs count as noisy if their middle half is wider than this share of the median, and than this many seconds."""

CONTENTION = {
    *("convoy", "long-hold", "square", "cpu-bound", "hand-overs", "gil-waits"),
    *("contended-lock", "lock-waits", "futex-storm"),
}
"""Findings that name waits for the GIL or for locks, which the remedies can shorten."""

Progress = Callable[[str], None]


class Undiagnosable(HintedError):  # noqa: N818 -- said of the command
    """Say why the command cannot be examined."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The mean wait of one thread for the GIL, without and with a remedy, in two traced runs."""

    thread: str
    remedy: str
    before_ns: float
    after_ns: float


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


@dataclass(slots=True)
class Contestant:
    """A way, the function that runs it, and the runs so far."""

    way: Way
    run: Callable[[], Trial]
    made: list[Trial] = field(default_factory=list[Trial])
    is_out: bool = False


def ways(words: Sequence[str]) -> list[Way]:
    """Return stock and the remedies that need no preparation."""
    command = " ".join(words)
    return [
        Way("stock", f"python {command}"),
        Way("scheduler", f"unsnarl run {command}", RunSettings(main_pid=0)),
        Way("native primitives", f"unsnarl run --patch {command}", RunSettings(main_pid=0, patch=True)),
    ]


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
        self._pack = Packed([])

    def diagnose(self, runs: int, budget_s: float) -> Diagnosis:
        """Run the command in all ways and return the diagnosis.

        Args:
            runs: the largest number of runs of each way.
            budget_s: seconds for all timed runs; each way has at least two runs.

        Raises:
            Undiagnosable: the command does not end by itself, or its exit status varies.
            OSError: the interpreter cannot be executed.
        """
        with (
            warmth.server(self._command, self._environment, self._limit_s) as warm,
            tempfile.TemporaryDirectory(prefix="unsnarl-doctor-") as folder,
        ):
            contestants = self._measure(runs, budget_s, warm, folder)
        stock = contestants[0].made
        outcomes = [comparison.outcome(each.way.name, each.way.what, each.made, stock) for each in contestants]
        diagnosis = Diagnosis(self._words, stock[0].status, outcomes, pack=self._pack)
        self._trace(diagnosis)
        self._time_imports(diagnosis)
        self._count_calls(diagnosis)
        conclude(diagnosis)
        return diagnosis

    def _measure(self, runs: int, budget_s: float, warm: list[str], folder: str) -> list[Contestant]:
        contestants = [Contestant(way, self._runner(way)) for way in ways(self._words)]
        if warm:
            name, *rest = self._command
            way = Way("warm", f"unsnarl warm run {' '.join([Path(name).name, *rest])}")
            contestants.append(Contestant(way, lambda: self._run_command(warm)))
        ends = time.monotonic() + budget_s
        for number in range(runs):
            if number >= 2 and time.monotonic() > ends:
                break
            for each in contestants:
                if not each.is_out:
                    self._progress(f"run {number + 1} of {runs}: {each.way.name}")
                    self._run_once(each, contestants[0].made)
                if number == 0 and each is contestants[0]:
                    contestants += self._packed(folder, each.made[0].wall_s)  # it runs last in each round
        return [each for each in contestants if each.made]

    def _run_once(self, contestant: Contestant, stock: list[Trial]) -> None:
        done = contestant.run()
        if contestant.way.name == "warm" and done.status == warmth.NOT_WARM != stock[0].status:
            return  # its server is being replaced by one that has learned more: nothing has run
        contestant.made.append(done)
        if contestant.made is stock:
            self._check_stock(stock)
        else:
            contestant.is_out = comparison.ends_differently(
                done, stock[0]
            )  # one such run suffices to advise against the way

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

    def _traced(self, directory: Path, name: str, *, scheduler: bool) -> list[Process]:
        folder = directory / name
        folder.mkdir()
        settings = RunSettings(
            main_pid=0,
            scheduler=scheduler,
            trace=str(folder),
            trace_chunks=TRACE_CHUNKS,
            executed_ns=time.monotonic_ns(),
        )
        self._progress(f"traced run: {name}")
        trial.run(Way(name, "", settings), self._words, self._environment, self._limit_s)
        try:
            return recordings.read(folder).processes
        except recordings.UnreadableTrace:
            return []

    def _trace(self, diagnosis: Diagnosis) -> None:
        with tempfile.TemporaryDirectory(prefix="unsnarl-doctor-") as folder:
            stock = self._traced(Path(folder), "stock", scheduler=False)
            diagnosis.findings = report.make(stock).findings if stock else []
            wanted = [finding.thread for finding in diagnosis.findings if finding.kind in ("convoy", "square")]
            if wanted:
                remedied = self._traced(Path(folder), "scheduler", scheduler=True)
                diagnosis.effects = _effects(stock, remedied, [name for name in wanted if name])

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


def _effects(before: list[Process], after: list[Process], names: list[str]) -> list[Effect]:
    """Compare the mean waits for the GIL of threads with the same names."""
    effects: list[Effect] = []
    for name in dict.fromkeys(names):
        old, new = _mean_wait(before, name), _mean_wait(after, name)
        if old is not None and new is not None:
            effects.append(Effect(name, "scheduler", old, new))
    return effects


def _mean_wait(processes: list[Process], name: str) -> float | None:
    threads = [thread for process in processes for thread in process.threads if thread.label == name and thread.waits]
    waits = sum(thread.waits for thread in threads)
    return sum(thread.waiting_ns for thread in threads) / waits if waits else None


def conclude(diagnosis: Diagnosis) -> None:
    """Write the verdict: which remedy helps by how much, or why none does."""
    from unsnarl.trace.findings.finding import duration

    best: dict[str, float] = {}
    lines = _disbelieve(diagnosis)
    for outcome in diagnosis.outcomes[1:]:
        if outcome.verdict == comparison.FASTER:
            best[outcome.name] = outcome.ratio
            lines.append(f"{outcome.name} helps: {outcome.ratio:.2f} × as fast as stock. `{outcome.what}`")
        elif outcome.verdict == comparison.SLOWER:
            lines.append(f"{outcome.name} costs time here: {outcome.ratio:.2f} × as fast as stock; leave it out")
        elif outcome.verdict == comparison.FAILED:
            lines.append(
                f"{outcome.name} breaks the command, which ended {outcome.failure} "
                f"and not with status {diagnosis.status}: leave it out, and please report it. `{outcome.what}`"
            )
    for effect in diagnosis.effects:
        if effect.after_ns < effect.before_ns / 2:
            best.setdefault(effect.remedy, effect.before_ns / max(effect.after_ns, 1))
            lines.append(
                f"{effect.remedy} helps thread `{effect.thread}`: its mean wait for the GIL falls from "
                f"{duration(effect.before_ns)} to {duration(effect.after_ns)}"
            )
    diagnosis.helps = bool(best)
    if not best:
        reasons = [finding.remedy.what for finding in diagnosis.findings if finding.remedy and not finding.remedy.helps]
        why = reasons[0].rpartition(" will not help here: ")[2] if reasons else _no_reason(diagnosis)
        lines.append(f"unsnarl will not help here: {why}")
    diagnosis.verdict = [*lines, *_doubts(diagnosis)]


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
