"""Goals of the scheduler, each with the measured value and a verdict.

A goal about a ratio counts as met or missed when the whole confidence interval of
the ratio says so (see ``unsnarl.statistics``); where the goal lies inside of
it, the verdict is that the difference is within the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bench.plan import CONNECTIONS, HOGS, THREADS
from bench.results import Results
from unsnarl.demo.figures import NONE, digits, times
from unsnarl.demo.variant import STOCK, UNSNARL
from unsnarl.statistics import Ratio, exponent

MET, MISSED, NOISE, UNMEASURED = "met", "**missed**", "within the noise", "not measured"
ECHO_SHARE, ECHO_P50_US, ECHO_P99_US, GIL_WAIT_P99_US = 0.50, 200.0, 5000.0, 1000.0
PACED_WORK, FAIRNESS, ALONE_WORK = 0.95, 0.95, 1.0
EXPONENT, SQUARE_SPEEDUP, SQUARE_AT = 1.15, 40.0, 800
WEB_SPEEDUP, WEB_ALONE, WEB_ALONE_C10 = 20.0, 1.0, 1.3
INSTRUCTIONS, RELEASE_NS = 1.01, 20.0


class Goal(NamedTuple):
    """One line of the table of goals."""

    work: str
    goal: str
    measured: str
    verdict: str


def at_least(work: str, bound: float, value: float | None, unit: str = "") -> Goal:
    """Return the goal that ``value`` reaches ``bound``."""
    text = NONE if value is None else f"{digits(value)}{unit}"
    verdict = UNMEASURED if value is None else MET if value >= bound else MISSED
    return Goal(work, f"≥ {digits(bound)}{unit}", text, verdict)


def at_most(work: str, bound: float, value: float | None, unit: str = "") -> Goal:
    """Return the goal that ``value`` does not exceed ``bound``."""
    text = NONE if value is None else f"{digits(value)}{unit}"
    verdict = UNMEASURED if value is None else MET if value <= bound else MISSED
    return Goal(work, f"≤ {digits(bound)}{unit}", text, verdict)


def ratio_at_least(work: str, bound: float, ratio: Ratio | None) -> Goal:
    """Return the goal that a ratio to stock reaches ``bound``."""
    if ratio is None:
        return Goal(work, f"≥ {digits(bound)}×", NONE, UNMEASURED)
    verdict = MET if ratio.low >= bound else MISSED if ratio.high < bound else NOISE
    return Goal(work, f"≥ {digits(bound)}×", times(ratio), verdict)


def ratio_at_most(work: str, bound: float, ratio: Ratio | None) -> Goal:
    """Return the goal that a ratio to stock does not exceed ``bound``."""
    if ratio is None:
        return Goal(work, f"≤ {bound:g}×", NONE, UNMEASURED)
    verdict = MET if ratio.high <= bound else MISSED if ratio.low > bound else NOISE
    return Goal(work, f"≤ {bound:g}×", f"{ratio.median:.4f}×", verdict)


def echo_goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the echo thread."""
    for protocol in ("udp", "tcp"):
        alone = results.get(f"echo-{protocol}-k0")
        own = alone.median(STOCK, "requests_per_s") if alone else None
        for k in HOGS:
            case = results.get(f"echo-{protocol}-k{k}")
            work = f"{protocol.upper()} echo next to {k}"
            if case is None:
                continue
            rate = case.median(UNSNARL, "requests_per_s")
            share = 100 * rate / own if rate is not None and own else None
            yield at_least(f"{work}: requests/s, of stock's without CPU threads", 100 * ECHO_SHARE, share, " %")
            yield at_most(f"{work}: p50", ECHO_P50_US, case.median(UNSNARL, "p50_us"), " µs")
            yield at_most(f"{work}: p99", ECHO_P99_US, case.median(UNSNARL, "p99_us"), " µs")
            wait_ns = case.gil("classes", "io", "wait_p99_ns")
            wait_us = None if wait_ns is None else wait_ns / 1e3
            yield at_most(f"{work}: GIL wait of I/O threads, p99", GIL_WAIT_P99_US, wait_us, " µs")


def work_goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the CPU-bound threads."""
    for k in HOGS:
        if paced := results.get(f"echo-paced-k{k}"):
            work = f"{k} CPU threads at 1,000 wake-ups/s"
            yield ratio_at_least(f"{work}: work", PACED_WORK, paced.ratio("work_per_s"))
            yield at_least(f"{work}: Jain index", FAIRNESS, paced.median(UNSNARL, "jain"))
    for k in HOGS:
        if alone := results.get(f"cpu-k{k}"):
            yield ratio_at_least(f"{k} CPU threads alone: work", ALONE_WORK, alone.ratio("work_per_s"))


def square_times(results: Results, program: str, variant: str) -> dict[int, float]:
    """Return the median times of a square program by number of threads."""
    found: dict[int, float] = {}
    for n in THREADS:
        case = results.get(f"squares-{program}-n{n}")
        time_s = case.median(variant, "elapsed_s") if case else None
        if time_s is not None:
            found[n] = time_s
    return found


def square_goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the square programs."""
    for program in ("start", "mutex", "wakeup"):
        times_by_n = square_times(results, program, UNSNARL)
        if not times_by_n:
            continue
        yield at_most(f"squares, {program}: growth exponent", EXPONENT, exponent(times_by_n))
        case = results.get(f"squares-{program}-n{SQUARE_AT}")
        speedup = case.ratio("elapsed_s", STOCK, UNSNARL) if case else None
        yield ratio_at_least(f"squares, {program}: speed at n = {SQUARE_AT}", SQUARE_SPEEDUP, speedup)
        stock, mine = (case.slowest(v, "elapsed_s") if case else None for v in (STOCK, UNSNARL))
        worst = stock / mine if stock and mine else None
        yield at_least(f"squares, {program}: speed of the slowest run at n = {SQUARE_AT}", SQUARE_SPEEDUP, worst, "×")


def web_goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the web servers."""
    for server in ("stdlib", "gunicorn"):
        if loaded := results.get(f"web-{server}-c10-k4"):
            work = f"web, {server}, c = 10, next to 4: requests/s"
            yield ratio_at_least(work, WEB_SPEEDUP, loaded.ratio("requests_per_s"))
        for c in CONNECTIONS:
            if alone := results.get(f"web-{server}-c{c}-k0"):
                work = f"web, {server}, c = {c}, no CPU thread: requests/s"
                yield ratio_at_least(work, WEB_ALONE, alone.ratio("requests_per_s"))
                if c == 10:
                    yield ratio_at_least(f"{work} (if it can be had)", WEB_ALONE_C10, alone.ratio("requests_per_s"))


def overhead_goals(results: Results) -> Iterator[Goal]:
    """Yield the goals of the costs without contention."""
    if instructions := results.get("overhead-instructions"):
        work = "a program without contention: instructions"
        yield ratio_at_most(work, INSTRUCTIONS, instructions.ratio("instructions"))
    for name, program in (("release", "before any second thread"), ("release-threaded", "after a second thread")):
        if release := results.get(f"overhead-{name}"):
            mine, stock = (release.median(v, "releasing_ns") for v in (UNSNARL, STOCK))
            extra = None if mine is None or stock is None else max(0.0, mine - stock)
            yield at_most(f"one GIL release and acquire, {program}: added time", RELEASE_NS, extra, " ns")


def starvation_goals(results: Results) -> Iterator[Goal]:
    """Yield the goals against starvation."""
    for abuse in ("sleep", "lock"):
        if case := results.get(f"starvation-{abuse}"):
            bound = case.median(UNSNARL, "bound_ms") or 0.0
            for who in ("hog", "abuser"):
                worst = case.slowest(UNSNARL, f"{who}_worst_ms")
                work = f"1 CPU thread, 100 threads abusing wake-ups by {abuse}: worst stall of a {who}"
                yield at_most(work, bound, worst, " ms")


def goals(results: Results) -> list[Goal]:
    """Return every goal for which there are results."""
    return [
        *echo_goals(results),
        *work_goals(results),
        *square_goals(results),
        *web_goals(results),
        *overhead_goals(results),
        *starvation_goals(results),
    ]
