"""Renders docs/results/cluster.md from the kept data; computes nothing that is not in them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "results" / "cluster.md"
NAMES = {"etcd": "etcd", "postgres": "PostgreSQL", "redis": "Redis"}
LOADS = {"call": "one C call, 3 × ttl", "threads": "8 CPU-bound threads", "tasks": "1,000 tasks that compute"}
FAULT_COLUMNS = ("acquisitions", "granted", "lost", "late", "accepted", "refused")
SECTIONS = ("uncontended", "handover", "outlived", "ten_thousand", "faults")
SAME, NEAR, CORE_PERCENT = 1.0, 1.3, 5.0


def middle(figures: list[float]) -> float:
    """Return the median."""
    return statistics.median(figures)


def verdict(*, is_met: bool) -> str:
    """Return the word for it."""
    return "met" if is_met else "**missed**"


def uncontended(data: dict[str, dict[str, list[float]]]) -> Iterator[str]:
    """Yield the table of what a pair costs."""
    yield "| store | by | acquire + release, µs | unsnarl's time over it (least to most) | goal | |"
    yield "|---|---|---|---|---|---|"
    for store, variants in data.items():
        ours = variants["unsnarl"]
        yield f"| {NAMES[store]} | unsnarl | {middle(ours):,.0f} | | | |"
        for name, theirs in variants.items():
            if name == "unsnarl":
                continue
            ratios = [our / their for our, their in zip(ours, theirs, strict=True)]
            bound = NEAR if name == "bare" else SAME
            label = "two bare transactions" if name == "bare" else name
            is_goal = name != "python-redis-lock"
            end = f"≤ {bound} | {verdict(is_met=middle(ratios) <= bound)}" if is_goal else "– | "
            spread = f"{middle(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            yield f"| {NAMES[store]} | {label} | {middle(theirs):,.0f} | {spread} | {end} |"


def handover(data: dict[str, dict[str, list[dict[str, float]]]]) -> Iterator[str]:
    """Yield the table of hand-overs."""
    yield "| store | waiters | held, ms | a hand-over, µs | a transaction, µs | ratio | requests a hand-over | goal | |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for store, by_chain in data.items():
        for chain, runs in by_chain.items():
            waiters, held = chain.split(", ")
            took = middle([run["hand_over_us"] for run in runs])
            once = middle([run["round_trip_us"] for run in runs])
            requests = middle([run["requests"] for run in runs])
            ratio = middle([run["hand_over_us"] / run["round_trip_us"] for run in runs])
            goal = f"≤ 1.2 | {verdict(is_met=ratio <= 1.2)}" if waiters == "100" else "– | "
            figures = f"{took:,.0f} | {once:,.0f} | {ratio:.2f} | {requests:.2f}"
            yield f"| {NAMES[store]} | {waiters} | {held} | {figures} | {goal} |"


def outlived(data: dict[str, Any]) -> Iterator[str]:
    """Yield the table of what was lost, and how long a plain client had to wait for an answer meanwhile."""
    yield f"| lock | {' | '.join(LOADS.values())} |"
    yield "|---|---|---|---|"
    for variant, loads in data["held"].items():
        cells = ["held" if loads[load] else "**lost**" for load in LOADS]
        yield f"| {variant} | {' | '.join(cells)} |"
    for store, longest in data["longest_answer_ms"].items():
        figures = [f"{longest[load]:,.0f} ms" for load in LOADS]
        yield f"| *{NAMES[store]}'s longest answer to a plain client* | {' | '.join(figures)} |"


def ten_thousand(data: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield the table of many leases."""
    yield "| store | leases | native threads | requests/s | percent of a core | goal | |"
    yield "|---|---|---|---|---|---|---|"
    for store, run in data.items():
        is_met = run["core_percent"] < CORE_PERCENT and run["threads"] == 1 and run["lost"] == 0
        yield (
            f"| {NAMES[store]} | {run['leases']:,.0f} | {run['threads']:.0f} | {run['requests_per_s']:.2f} "
            f"| {run['core_percent']:.2f} | < 5, one thread | {verdict(is_met=is_met)} |"
        )


def faults(data: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the table of what was broken, and what the clients saw of it."""
    yield "| store | s | faults | acquisitions | granted | lost | late | accepted | refused | porcupine |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for store, run in data.items():
        figures = " | ".join(f"{run[name]:,}" for name in FAULT_COLUMNS)
        broken = sum(run["faults"].values())
        yield f"| {NAMES[store]} | {run['seconds']:g} | {broken} | {figures} | {run['porcupine']} |"


def circumstances(data: dict[str, Any]) -> Iterator[str]:
    """Yield the table of when and on what each section was measured."""
    yield "| section | taken | sources | machine | servers |"
    yield "|---|---|---|---|---|"
    for section in SECTIONS:
        at = data.get("sections", {}).get(section, data["machine"])
        machine = f"{at['cpu']}, Linux {at['kernel']}, {at['libc']}"
        servers = ", ".join(f"{name} {version}" for name, version in at.get("stores", {}).items())
        yield f"| {section.replace('_', ' ')} | {at['taken']} | {at['commit']} | {machine} | {servers or '–'} |"


def page(data: dict[str, Any]) -> str:
    """Return the whole page."""
    lines = [
        "# Primitives between machines",
        "",
        "Written by `python -m bench.cluster.page` from what `scripts/cluster-servers python -m bench.cluster` has",
        "measured: the stores on loopback with their defaults (Redis with its append-only file), peers in turn,",
        "medians. One section can be measured anew (`--only`); the table says from which sources and when each is.",
        "",
        *circumstances(data),
        "",
        "## Nobody in the way",
        "",
        *uncontended(data["uncontended"]),
        "",
        "The bare transactions are redis-py's (MULTI), psycopg's (an UPDATE that commits) and, for etcd, puts over",
        "its JSON gateway, which is how etcd3gw reaches it. Each of them waits for the disk where its store does; so",
        "does unsnarl's acquire, and its release on PostgreSQL only where somebody waits for the lock.",
        "",
        "## From one waiter to the next",
        "",
        *handover(data["handover"]),
        "",
        "A transaction is an uncontended acquire, over the same connection, from a task; it has a wake-up of its own.",
        "Where locks are held for a while, as long a pause is before each of them: the processors fall asleep in both.",
        "",
        "## Who still has the lock",
        "",
        f"With a ttl of {data['ttl_s']:g} s; threads and tasks run for {data['seconds']:g} s, all locks under a load",
        "at once, in processes of their own. Renewing threads renew three times in the ttl.",
        "",
        *outlived(data["outlived"]),
        "",
        "The plain client asks twice a second for what waits for no disk; it has nothing of unsnarl. A store that is",
        "silent for longer than the ttl confirms nobody's lease. [PostgreSQL's page](../guide/cluster-postgresql.md)",
        "says why a server can be, on a machine that it shares with CPU-bound programs.",
        "",
        "## Many leases",
        "",
        *ten_thousand(data["ten_thousand"]),
        "",
        "## While things break",
        "",
        "Five clients at one lock (ttl 2 s), while clients and servers are killed and stopped (SIGSTOP) and, of the",
        "three members of etcd, cut off. An acquisition is late if it has not ended within its timeout, 10 s, and 12 s",
        "on top, for pauses and connecting again. porcupine checks the history of all operations.",
        "",
        *faults(data["faults"]),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Render the newest results."""
    newest = max((ROOT / "bench" / "results").glob("cluster-*.json"))
    PAGE.write_text(page(json.loads(newest.read_text(encoding="utf-8"))), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
