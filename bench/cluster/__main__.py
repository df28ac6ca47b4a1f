"""Measures everything, in one run, and keeps it as data."""

from __future__ import annotations

import argparse
import json
import platform
import sys
from pathlib import Path
from typing import Any

from bench.cluster import handover, leases, uncontended
from bench.cluster.peers import missing, versions
from bench.machine import describe

RESULTS = Path(__file__).resolve().parents[1] / "results"
STORES = ("etcd", "postgres", "redis")
TIMES = {"etcd": 100, "postgres": 100, "redis": 500}
LEASES = 10_000
CHAINS = ((10, 0.0), (100, 0.0), (100, 0.02))


def main() -> None:
    """Parse the options, measure, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.cluster", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds of the uncontended figures (default: 7)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long a load on the GIL lasts (default: 60)")
    parser.add_argument("--only", choices=SECTIONS, help="measure one section anew, and keep the others")
    parser.add_argument("--faults", type=Path, help="measure nothing; keep this file of tests/cluster/test_faults.py")
    options = parser.parse_args()
    if not options.faults and (names := missing(STORES)):
        parser.error(f"{names[0]} is not set: run it as `scripts/cluster-servers python -m bench.cluster`")
    version = ".".join(platform.python_version_tuple()[:2])
    path = RESULTS / f"cluster-{version}.json"
    results: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if not options.only and not options.faults:
        results |= {"machine": describe(sys.executable), "seconds": options.seconds, "ttl_s": leases.TTL_S}
    if options.faults:
        found = json.loads(options.faults.read_text(encoding="utf-8"))
        results["faults"] = {**results.get("faults", {}), **found}
        note(results, "faults")
    for section in [] if options.faults else [options.only] if options.only else SECTIONS:
        if section == "outlived":
            results["seconds"] = options.seconds
        results[section] = SECTIONS[section](options)
        note(results, section)
    path.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"{path}: render it with `python -m bench.cluster.page`")


def note(results: dict[str, Any], section: str) -> None:
    """Keep when, from which sources and on what a section was measured."""
    results.setdefault("sections", {})[section] = describe(sys.executable) | {"stores": versions()}


def measure_uncontended(options: argparse.Namespace) -> object:
    """Measure what a pair costs."""
    return {store: uncontended.measure(store, options.rounds, TIMES[store]) for store in STORES}


def measure_handover(_options: argparse.Namespace) -> object:
    """Measure hand-overs, three times each; by the number of waiters, and the seconds for which each holds."""
    return {
        store: {
            f"{waiters}, {held_s * 1000:g}": [handover.measure(store, waiters, held_s) for _ in range(3)]
            for waiters, held_s in CHAINS
        }
        for store in STORES
    }


def measure_ten_thousand(_options: argparse.Namespace) -> object:
    """Measure what many leases cost."""
    return {store: leases.ten_thousand(store, LEASES, 20.0) for store in STORES}


def measure_outlived(options: argparse.Namespace) -> object:
    """Measure which locks outlive which load."""
    return leases.measure(options.seconds)


SECTIONS = {
    "uncontended": measure_uncontended,
    "handover": measure_handover,
    "ten_thousand": measure_ten_thousand,
    "outlived": measure_outlived,
}


if __name__ == "__main__":
    main()
