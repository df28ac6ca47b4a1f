"""Start-up of real commands: plain, warm, packed, and chg, in alternation.

    python -m bench.warm.commands --bin VENV/bin [--chg CHG] [--only hg] --out bench/results/warm-3.13.json
    python -m bench.warm.commands --render bench/results/warm-3.13.json > docs/results/warm.md

``VENV`` has unsnarl, mercurial, black, httpie, awscli and ansible-core; a command that is not installed is left out.
Measured is the wall time from ``posix_spawn`` to ``waitpid``, with output to /dev/null, in a repository of 200 files.
Servers are started, and have learned, before the first measured run; packs are made then too. Results of other
commands in ``--out`` are kept, so that each command may be measured in a run of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import machine
from unsnarl.doctor.warmth import NOT_WARM
from unsnarl.lab.running.commands import wait_until_learned

COMMANDS: dict[str, tuple[str, ...]] = {
    "hg status": ("hg", "status"),
    "hg --version -q": ("hg", "--version", "-q"),
    "black --version": ("black", "--version"),
    "http --version": ("http", "--version"),
    "aws --version": ("aws", "--version"),
    "ansible --version": ("ansible", "--version"),
}
GOALS: dict[str, dict[str, float]] = {
    "hg status": {"warm": 0.060, "packed": 0.80},
    "black --version": {"warm": 0.035, "packed": 0.80},
    "http --version": {"warm": 0.040},
    "aws --version": {"warm": 0.08, "packed": 0.80},
    "ansible --version": {"warm": 0.021},
}
"""Largest ratios to the plain run that are the goals; a further goal is to be no slower than chg in the same run."""
PACKED: dict[str, tuple[str, ...]] = {
    "packed": (),
    "packed, directories": ("--check", "directories"),
    "packed, lazy": ("--check", "directories", "--lazy"),
}
"""Kinds of packs, with the options of ``unsnarl pack``; the goals are for the first, the default."""
LEARNING_RUNS = 10
"""Runs before the first measured one, during which servers learn modules to import and pages to copy."""
DROPPED = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "UNSNARL")


def spawn_s(argv: list[str], environ: dict[str, str]) -> float:
    """Return the wall time of one run in seconds; raises if it fails."""
    null = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    begin = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, environ, file_actions=null)
    _, status = os.waitpid(pid, 0)
    elapsed_s = time.perf_counter() - begin
    if status != 0:
        raise RuntimeError(f"{' '.join(argv)} ended with {os.waitstatus_to_exitcode(status)}")
    return elapsed_s


def environment(runtime_directory: Path) -> dict[str, str]:
    """Return an environment in which warm servers use a runtime directory made for the measurement."""
    own = {name: value for name, value in os.environ.items() if name not in DROPPED}
    return own | {"UNSNARL_WARM_DIR": str(runtime_directory), "UNSNARL_WARM_SPEND": "any"}


def learn(argv: list[str], environ: dict[str, str]) -> None:
    """Run a warm command until its server has learned what later runs use; raises if a run fails."""
    for _ in range(LEARNING_RUNS):
        spawn_s(argv, environ)
        wait_until_learned(Path(environ["UNSNARL_WARM_DIR"]))


def variants(words: tuple[str, ...], bin_dir: Path, scratch: Path, chg: str | None) -> dict[str, list[str]]:
    """Return the command lines to compare; the first is the base."""
    plain = [str(bin_dir / words[0]), *words[1:]]
    found = {"plain": plain, "warm": [str(bin_dir / "unsnarl"), "warm", "run", "--", *plain]}
    for number, (variant, options) in enumerate(PACKED.items()):
        pack = scratch / f"{words[0]}-{number}.pack"
        record = ["pack", plain[0], "-o", str(pack), *options, "--with", " ".join(words[1:])]
        subprocess.run([str(bin_dir / "unsnarl"), *record], check=True, stdout=subprocess.DEVNULL)
        found[variant] = [str(pack.with_suffix("")), *words[1:]]
    if chg and words[0] == "hg":
        found["chg"] = [chg, *words[1:]]
    return found


def repository(directory: Path, bin_dir: Path) -> None:
    """Make a Mercurial repository of 200 files in a directory; only the files where hg is not installed."""
    for number in range(200):
        (directory / f"file{number}").write_text(f"{number}\n")
    hg = str(bin_dir / "hg")
    if os.path.exists(hg):
        for words in (["init"], ["add", "-q"], ["commit", "-q", "-m", "all", "-u", "bench"]):
            subprocess.run([hg, *words], cwd=directory, check=True)


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """Measure all installed commands."""
    bin_dir = Path(arguments.bin).absolute()
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-", ignore_cleanup_errors=True) as name:
        scratch = Path(name)
        environ = environment(scratch / "runtime") | {"CHGHG": str(bin_dir / "hg")}
        (scratch / "repository").mkdir()
        repository(scratch / "repository", bin_dir)
        os.chdir(scratch / "repository")
        for label, words in COMMANDS.items():
            if (bin_dir / words[0]).exists() and (not arguments.only or words[0] in arguments.only):
                lines = variants(words, bin_dir, scratch, arguments.chg)
                seconds = one(lines, environ, arguments.rounds)
                found[label] = {"where": where(bin_dir, words[0]), "seconds": seconds, "calls": calls(lines, environ)}
        subprocess.run([str(bin_dir / "unsnarl"), "warm", "stop"], env=environ, check=False)
        os.chdir("/")
    return found


def where(bin_dir: Path, command: str) -> dict[str, object]:
    """Return the machine and the versions."""
    said = subprocess.run([str(bin_dir / command), "--version"], check=True, capture_output=True, text=True).stdout
    version = said.partition("\n")[0]
    circumstances = machine.describe(sys.executable)
    return {
        "python": sys.version.split()[0],
        "machine": f"{circumstances['cpu']}, {platform.platform()}",
        "cpus": circumstances["cores"],
        "sources": circumstances["commit"],
        "version": version,
    }


LOOKUPS_GOAL = 0.20
"""Goal: the largest ratio of a pack's look-ups to those of the plain run."""
LOOKUPS = "stat,lstat,newfstatat,fstat,statx,openat,open,getdents64"


def calls(lines: dict[str, list[str]], environ: dict[str, str]) -> dict[str, int]:
    """Count the system calls that look up files, plain and packed; empty without strace."""
    if shutil.which("strace") is None:
        return {}
    counts: dict[str, int] = {}
    for variant in ("plain", *PACKED):
        argv = ["strace", "-f", "-qq", "-e", f"trace={LOOKUPS}", *lines[variant]]
        traced = subprocess.run(argv, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        counts[variant] = traced.stderr.count(b" = ")
    return counts


def complain(line: list[str], environ: dict[str, str]) -> None:
    """Write to stderr why a command is not served, if so: its warm runs are then plain runs."""
    at = line.index("--")
    asked = subprocess.run([*line[:at], "--require", *line[at:]], env=environ, check=False, capture_output=True)
    if asked.returncode == NOT_WARM:
        sys.stderr.write(f"{' '.join(line)} is not served:\n")
        subprocess.run([line[0], "warm", "why", line[at + 1]], env=environ, check=False, stdout=sys.stderr)
        subprocess.run([line[0], "warm", "logs"], env=environ, check=False, stdout=sys.stderr)


def one(lines: dict[str, list[str]], environ: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return the times of every variant of one command, round by round in alternation."""
    for argv in lines.values():
        spawn_s(argv, environ)
    learn(lines["warm"], environ)
    complain(lines["warm"], environ)
    times: dict[str, list[float]] = {variant: [] for variant in lines}
    for _ in range(rounds):
        for variant, argv in lines.items():
            times[variant].append(spawn_s(argv, environ))
    return times


def render(data: Any) -> str:
    """Return the results as a page: medians in ms, and their ratio to plain."""
    places = {f"{one['where']['machine']}, {one['where']['cpus']} processors" for one in data.values()}
    sources = sorted({one["where"].get("sources", "of an unknown commit") for one in data.values()})
    pythons = ", ".join(sorted({one["where"]["python"] for one in data.values()}))
    rows = [
        "# Start-up of real commands",
        "",
        f"CPython {pythons} on {'; '.join(sorted(places))}; sources {', '.join(sources)}.",
        "How it is measured: the head of `bench/warm/commands.py`, which has written this page.",
        "The variants of a command alternate in one run.",
        "",
        "| command | variant | runs | min ms | median ms | quartiles ms | of plain | goal |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for label, one in data.items():
        rows += [row(label, variant, one["seconds"]) for variant in one["seconds"]]
    rows += ["", "| command | version | variant | lookups of files | of plain | goal |", "|---|---|---|---|---|---|"]
    for label, one in data.items():
        rows += [lookups(label, variant, one) for variant in one["calls"]]
    return "\n".join(rows) + "\n"


def row(label: str, variant: str, seconds: dict[str, list[float]]) -> str:
    """Return the table row of one variant of one command."""
    values = seconds[variant]
    low, median, high = statistics.quantiles(values, n=4)
    ratio = median / statistics.median(seconds["plain"])
    goal = GOALS.get(label, {}).get(variant)
    verdict = "" if goal is None else f"≤ {goal:.3f}: {'met' if ratio <= goal else 'missed'}"
    times = f"{min(values) * 1e3:.1f} | {median * 1e3:.1f} | {low * 1e3:.1f} to {high * 1e3:.1f}"
    return f"| `{label}` | {variant} | {len(values)} | {times} | {ratio:.3f} | {verdict} |"


def lookups(label: str, variant: str, one: Any) -> str:
    """Return the table row with the file look-ups of one variant of a command."""
    ratio = one["calls"][variant] / one["calls"]["plain"]
    verdict = f"≤ {LOOKUPS_GOAL:.2f}: {'met' if ratio <= LOOKUPS_GOAL else 'missed'}" if variant != "plain" else ""
    return f"| `{label}` | {one['where']['version']} | {variant} | {one['calls'][variant]} | {ratio:.2f} | {verdict} |"


def main() -> None:
    """Measure, or render the results of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of the commands and of unsnarl")
    parser.add_argument("--chg", help="path of Mercurial's own client, to compare with")
    parser.add_argument("--only", nargs="*", help="commands to measure, by name")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", type=os.path.abspath, help="file to write the results to")
    parser.add_argument("--render", help="file of results to show")
    arguments = parser.parse_args()
    if arguments.render:
        data: dict[str, Any] = json.loads(Path(arguments.render).read_text())
    else:
        data = measure(arguments)
        if arguments.out:
            out = Path(arguments.out)
            before: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
            data = before | data
            out.write_text(json.dumps(data, indent=1) + "\n")
    sys.stdout.write(render(data))


if __name__ == "__main__":
    main()
