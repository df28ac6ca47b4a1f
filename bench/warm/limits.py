"""The cost of warm commands at two limits: a command that does nothing, and 1,000 calls from 8 concurrent shells.

    python -m bench.warm.limits --bin VENV/bin --out bench/results/warm-limits-3.13.json
    python -m bench.warm.limits --render bench/results/warm-limits-3.13.json > docs/results/warm-limits.md

``nothing``: a script that imports one module with 50 MB of data and ends, from spawn to wait. It is compared with the
smallest possible program: a static executable whose ``main`` returns. Both alternate, once without a pause, so that the
server prepares the next call during the measured one, and once with a pause before each, as when commands are typed.
(Needs a C compiler that links statically.)

``burst``: eight shells, each of which calls a command repeatedly; bursts of plain and warm calls alternate. There are
fewer plain calls, and their time, which is linear in the number, is scaled; the page states this.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import machine
from bench.warm.commands import environment, learn, spawn_s

BALLAST_MB = 50
NOTHING_GOAL, BURST_GOAL = 4.0, 0.10
"""Goals: the largest ratio to the static executable, and to the plain calls."""
SHELLS = 8
PAUSES_S = {"without a pause": 0.0, "20 ms apart": 0.02}


def nothing(bin_dir: Path, scratch: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of the static executable and of the command that does nothing, alternating, for each pause."""
    (scratch / "least.c").write_text("int main(void) { return 0; }\n")
    least = str(scratch / "least")
    subprocess.run(["cc", "-static", "-O2", "-o", least, f"{least}.c"], check=True)
    (scratch / "ballast.py").write_text(f"DATA = bytearray(b'x') * ({BALLAST_MB} << 20)\n")
    command = scratch / "nothing"
    command.write_text(f"#!{bin_dir / 'python'}\nimport ballast\n")
    command.chmod(0o755)
    environ = environment(scratch / "nothing-runtime")
    warm = [str(bin_dir / "unsnarl"), "warm", "run", "--require", "--", str(command)]
    subprocess.run([warm[0], "warm", "start", "--", str(command)], env=environ, check=True)
    learn(warm, environ)
    found: dict[str, dict[str, list[float]]] = {}
    for name, pause_s in PAUSES_S.items():
        times: dict[str, list[float]] = {"static": [], "warm": []}
        found[name] = times
        for _ in range(rounds):
            for variant, words in (("static", [least]), ("warm", warm)):
                time.sleep(pause_s)
                times[variant].append(spawn_s(words, environ))
    subprocess.run([warm[0], "warm", "stop"], env=environ, check=False)
    return found


def burst_s(words: str, calls: int, environ: dict[str, str]) -> tuple[float, int]:
    """Run ``calls`` invocations from all shells; returns seconds and the number of failures."""
    loop = (
        f"fails=0; for i in $(seq {calls // SHELLS}); do "
        f"{words} >/dev/null 2>&1 || fails=$((fails+1)); done; echo $fails"
    )
    begin = time.perf_counter()
    shells = [subprocess.Popen(["sh", "-c", loop], env=environ, stdout=subprocess.PIPE) for _ in range(SHELLS)]
    fails = sum(int(shell.communicate()[0]) for shell in shells)
    return time.perf_counter() - begin, fails


def burst(bin_dir: Path, scratch: Path, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the times and failures of each pair of bursts."""
    environ = environment(scratch / "burst-runtime")
    client, plain = str(bin_dir / "unsnarl"), f"{bin_dir / options.command}"
    if options.calls % SHELLS or options.plain_calls % SHELLS:
        raise SystemExit(f"error: --calls and --plain-calls must be multiples of {SHELLS}, the number of shells")
    subprocess.run([client, "warm", "start", "--", plain.split(maxsplit=1)[0]], env=environ, check=True)
    pairs: list[dict[str, Any]] = []
    for _ in range(options.pairs):
        plain_s, plain_fails = burst_s(plain, options.plain_calls, environ)
        warm_s, warm_fails = burst_s(f"{client} warm run -- {plain}", options.calls, environ)
        status = subprocess.run([client, "warm", "status"], env=environ, check=True, capture_output=True, text=True)
        pairs.append(
            {
                "plain_s": plain_s,
                "plain_calls": options.plain_calls,
                "warm_s": warm_s,
                "warm_calls": options.calls,
                "failed": plain_fails + warm_fails,
                "servers": status.stdout.count("server  "),
            }
        )
    subprocess.run([client, "warm", "stop"], env=environ, check=False)
    return pairs


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measure both limits."""
    bin_dir = Path(options.bin).absolute()
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-", ignore_cleanup_errors=True) as name:
        return {
            "machine": machine.describe(str(bin_dir / "python")),
            "command": options.command,
            "nothing": nothing(bin_dir, Path(name), options.rounds),
            "burst": burst(bin_dir, Path(name), options),
        }


def ratio_of(pair: dict[str, Any]) -> float:
    """Return the ratio of the times of a warm call and a plain call."""
    return float(pair["warm_s"] / pair["warm_calls"] / (pair["plain_s"] / pair["plain_calls"]))


def spread(values: list[float], digits: int) -> str:
    """Return the median and the range or quartiles of some values, as text."""
    low, high = min(values), max(values)
    if len(values) > 4:
        low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def verdict(value: float, goal: float) -> str:
    """Return the goal, and whether it was met."""
    return f"≤ {goal:g}: {'met' if value <= goal else 'missed'}"


def nothing_row(name: str, times: dict[str, list[float]]) -> str:
    """Return the table row of the calls with one pause."""
    ratios = [warm / static for static, warm in zip(times["static"], times["warm"], strict=True)]
    static, warm = (spread([value * 1e3 for value in times[variant]], 2) for variant in ("static", "warm"))
    return f"| {name} | {static} | {warm} | {spread(ratios, 2)} | {verdict(statistics.median(ratios), NOTHING_GOAL)} |"


def render(data: dict[str, Any]) -> str:
    """Return the results as a page."""
    taken, pairs = data["machine"], data["burst"]
    bursts = [ratio_of(pair) for pair in pairs]
    calls, plain_calls = pairs[0]["warm_calls"], pairs[0]["plain_calls"]
    plain = [pair["plain_s"] * pair["warm_calls"] / pair["plain_calls"] for pair in pairs]
    return f"""# Warm at its limits

CPython {taken["python"]["version"]}, {taken["cpu"]}, {taken["cores"]} processors, Linux {taken["kernel"]}; sources {taken["commit"]}.
How it is measured: the head of `bench/warm/limits.py`, which has written this page.

## A command that does nothing, with {BALLAST_MB} MB in its server

Medians of {max(len(times["warm"]) for times in data["nothing"].values())} rounds, with quartiles.

| calls | a static executable, ms | client and worker, ms | ratio | goal |
|---|---|---|---|---|
{chr(10).join(nothing_row(name, times) for name, times in data["nothing"].items())}

## {calls:,} calls of `{data["command"]}` from {SHELLS} concurrent shells

Medians of {len(pairs)} pairs, with their range; plain is scaled from {plain_calls} calls.

| variant | s | ratio | calls that failed | servers | goal |
|---|---|---|---|---|---|
| plain | {spread(plain, 2)} | 1 |  |  |  |
| warm | {spread([pair["warm_s"] for pair in pairs], 2)} | {spread(bursts, 3)} | {sum(pair["failed"] for pair in pairs)} | {max(pair["servers"] for pair in pairs)} | {verdict(statistics.median(bursts), BURST_GOAL)} |
"""  # noqa: E501 - rows of a table


def main() -> None:
    """Measure, or render the results of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of the commands and of unsnarl")
    parser.add_argument("--command", default="hg --version -q", help="what the shells call")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--plain-calls", type=int, default=200)
    parser.add_argument("--out", type=os.path.abspath, help="file to write the results to")
    parser.add_argument("--render", help="file of results to show")
    options = parser.parse_args()
    if options.render:
        data: dict[str, Any] = json.loads(Path(options.render).read_text())
    else:
        data = measure(options)
        if options.out:
            Path(options.out).write_text(json.dumps(data, indent=1) + "\n")
    sys.stdout.write(render(data))


if __name__ == "__main__":
    main()
