"""Renderer of the results page, in Markdown: ``python -m bench.render DIR --out FILE``.

Invariant: every figure on the page is from the results. A difference is marked as noise if the pairs do not agree on
its direction.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from bench.goals import MET, MISSED, NOISE, SQUARE_AT, goals, square_times
from bench.markdown import table, write
from bench.plan import CONNECTIONS, HOGS, THREADS
from bench.results import Result, Results, load
from unsnarl.demo.figures import NONE, TOO_FEW, count, digits, duration, times
from unsnarl.demo.variant import STOCK, SWITCHINTERVAL, UNSNARL, VARIANTS
from unsnarl.lab.machine import build_of
from unsnarl.statistics import FEWEST_PAIRS, exponent


def by_variant(result: Result, figure: str) -> list[str]:
    """Return the cells of a rate: a median per variant, then the ratios to stock."""
    cells = [count(result.median(variant, figure)) for variant in VARIANTS]
    return [*cells, times(result.ratio(figure, SWITCHINTERVAL)), times(result.ratio(figure))]


RATE_HEAD = ("stock", "interval 0.5 ms", "unsnarl", "interval / stock", "unsnarl / stock")


def goals_section(results: Results) -> str:
    """Return the table of goals with its tally."""
    every = goals(results)
    tally = ", ".join(
        f"{sum(goal.verdict == verdict for goal in every)} {verdict.strip('*')}" for verdict in (MET, NOISE, MISSED)
    )
    if not every:
        return ""
    head = ("work", "goal", "measured", "verdict")
    return f"## Goals\n\nOf {len(every)}: {tally}.\n\n{table(head, every)}"


def latency_cell(result: Result, variant: str) -> str:
    """Return median and 99th percentile of a variant."""
    return " / ".join(duration(result.median(variant, name)) for name in ("p50_us", "p99_us"))


def rate_rows(results: Results, named: Sequence[tuple[str, str]], figure: str) -> list[list[str]]:
    """Return a row of rates for each (case, label) that was measured."""
    return [[label, *by_variant(results[name], figure)] for name, label in named if name in results]


def latency_rows(results: Results, named: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return a row of latencies for each (case, label) that was measured."""
    return [[label, *(latency_cell(results[name], v) for v in VARIANTS)] for name, label in named if name in results]


def echo_section(results: Results) -> str:
    """Return the tables of the echo thread."""
    named = [
        (f"echo-{protocol}-k{k}", f"{protocol.upper()}, k = {k}") for protocol in ("udp", "tcp") for k in (0, *HOGS)
    ]
    paced = [(f"echo-paced-k{k}", f"k = {k}") for k in HOGS]
    return "\n".join(
        [
            "## An echo thread next to CPU-bound threads\n",
            "Requests per second, one client in a closed loop:\n",
            table(("", *RATE_HEAD), rate_rows(results, named, "requests_per_s")),
            "Latency seen by the client, p50 / p99:\n",
            table(("", *RATE_HEAD[:3]), latency_rows(results, named)),
            "Work of the CPU-bound threads during that time, units per second:\n",
            table(("", *RATE_HEAD), rate_rows(results, [n for n in named if "k0" not in n[0]], "work_per_s")),
            "Their work while the echo thread is woken 1,000 times a second:\n",
            table(("", *RATE_HEAD), rate_rows(results, paced, "work_per_s")),
            "Requests per second answered of those 1,000:\n",
            table(("", *RATE_HEAD), rate_rows(results, paced, "requests_per_s")),
        ]
    )


def cpu_section(results: Results) -> str:
    """Return the table of CPU-bound threads alone."""
    named = [(f"cpu-k{k}", f"k = {k}") for k in HOGS]
    return "## CPU-bound threads alone\n\nUnits of work per second:\n\n" + table(
        ("", *RATE_HEAD), rate_rows(results, named, "work_per_s")
    )


def square_section(results: Results) -> str:
    """Return the table of the square programs, with their fitted exponents."""
    rows: list[list[str]] = []
    for program in ("start", "mutex", "wakeup"):
        for variant in VARIANTS:
            found = square_times(results, program, variant)
            if not found:
                continue
            cells = [digits(found[n]) if n in found else NONE for n in THREADS]
            slope = exponent(found)
            rows.append([f"{program}, {variant}", *cells, NONE if slope is None else f"{slope:.2f}"])
    head = ("seconds at n =", *(f"{n:,}" for n in THREADS), "exponent")
    named = [(f"squares-{program}-n{SQUARE_AT}", program) for program in ("start", "mutex", "wakeup")]
    slowest = [
        [label, *(count(results[name].slowest(v, "elapsed_s")) for v in VARIANTS)]
        for name, label in named
        if name in results
    ]
    return "\n".join(
        [
            "## The square programs\n",
            table(head, rows),
            f"The slowest run at n = {SQUARE_AT}, seconds. `wakeup` falls into its square by chance, when the GIL",
            "changes hands inside a `release()`; the median may not show it:\n",
            table(("", *RATE_HEAD[:3]), slowest),
        ]
    )


def web_section(results: Results) -> str:
    """Return the tables of the web servers."""
    named = [
        (f"web-{server}-c{c}-k{k}", f"{server}, c = {c}, k = {k}")
        for server in ("stdlib", "gunicorn")
        for k in (0, 1, 4)
        for c in CONNECTIONS
    ]
    named += [(f"web-wrk-c10-k{k}", f"stdlib, c = 10, k = {k}, loaded by wrk") for k in (0, 4)]
    return "\n".join(
        [
            "## Threaded web servers\n",
            "Requests per second:\n",
            table(("", *RATE_HEAD), rate_rows(results, named, "requests_per_s")),
            "Latency, p50 / p99:\n",
            table(("", *RATE_HEAD[:3]), latency_rows(results, named)),
            "Work of the CPU-bound threads during that time, units per second:\n",
            table(("", *RATE_HEAD), rate_rows(results, [n for n in named if "k0" not in n[0]], "work_per_s")),
        ]
    )


def overhead_section(results: Results) -> str:
    """Return the table of costs without contention."""
    named = (
        ("overhead-release", "releasing_ns", "a call that releases the GIL, before any second thread, ns"),
        ("overhead-release-threaded", "releasing_ns", "the same after a second thread, ns"),
        ("overhead-program", "elapsed_s", "a program without contention, s"),
        ("overhead-instructions", "instructions", "the program, instructions"),
        ("overhead-instructions", "startup_instructions", "starting the interpreter and installing, instructions"),
    )
    rows = [[label, *by_variant(results[name], figure)] for name, figure, label in named if name in results]
    return "## Without contention\n\n" + table(("", *RATE_HEAD), rows)


def starvation_section(results: Results) -> str:
    """Return the table of the worst stalls."""
    rows = [
        [
            f"abuse by {abuse}, worst stall of {who}",
            *(count(results[name].slowest(v, f"{figure}_worst_ms")) for v in VARIANTS),
        ]
        for abuse in ("sleep", "lock")
        for figure, who in (("hog", "the CPU thread"), ("abuser", "an abuser"))
        if (name := f"starvation-{abuse}") in results
    ]
    return "## Starvation\n\nOne CPU-bound thread, 100 threads that abuse wake-ups; ms:\n\n" + table(
        ("", *RATE_HEAD[:3]), rows
    )


def failures_section(results: Results) -> str:
    """Return the list of runs without figures; empty if there are none."""
    lines = [
        f"- {result.name}, {variant}: {failure}"
        for result in results.values()
        for variant in (STOCK, SWITCHINTERVAL, UNSNARL)
        for failure in result.failures(variant)
    ]
    return "## Runs without a result\n\n" + "\n".join(lines) + "\n" if lines else ""


def heading(results: Results) -> str:
    """Return the title, the machine, and an explanation of the page."""
    some = next(iter(results.values()))
    machine, python = some.machine, some.machine["python"]
    pairs = sorted({result.pairs() for result in results.values()})
    taken = sorted(result.machine["taken"] for result in results.values())
    commits = sorted({result.machine["commit"] for result in results.values()})
    return (
        f"# Measured with {python['implementation']} {python['version']}\n\n"
        f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, {machine['libc']}; "
        f"interpreter built with {python['compiler']}, {build_of(python)}; "
        f"sources {', '.join(commits)}; taken {taken[0]} to {taken[-1]}.\n\n"
        f"Stock, a switch interval of 0.5 ms, and unsnarl alternate; medians of "
        f"{' or '.join(map(str, pairs))} pairs. A ratio is formed within each pair; after ± the standard "
        "deviation of the pairs' ratios. ≈ marks a difference within the noise: the pairs leave open which "
        f"side is greater. {TOO_FEW} marks a ratio of fewer than {FEWEST_PAIRS} pairs, too few to judge "
        "(counts of instructions are the same in every run). "
        "How to measure: [benchmarks](../reference/benchmarks.md).\n"
    )


def page(results: Results) -> str:
    """Return the whole page."""
    sections = (
        heading,
        goals_section,
        echo_section,
        cpu_section,
        square_section,
        web_section,
        overhead_section,
        starvation_section,
        failures_section,
    )
    return "\n".join(section(results) for section in sections).rstrip() + "\n"


def main() -> None:
    """Render a directory of results."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.render", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `python -m bench --out` wrote to")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the page (default: stdout)")
    arguments = parser.parse_args()
    results = load(arguments.folder)
    if not results:
        raise SystemExit(f"error: no results in {arguments.folder}\nhint: python -m bench --out {arguments.folder}")
    write(page(results), arguments.out)


if __name__ == "__main__":
    main()
