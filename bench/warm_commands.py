"""Start-up of real commands: plain, warm, packed, and chg, in alternation.

    python -m bench.warm_commands --bin VENV/bin [--chg CHG] --out results/warm.json
    python -m bench.warm_commands --render results/warm.json

``VENV`` has unsnarl, mercurial, black, httpie, awscli and ansible-core; what is
missing is left out and named. Wall time of ``posix_spawn`` to ``waitpid``,
output to /dev/null, in a repository of 200 files; servers are started and have
learned before. Packs are made on the spot.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMANDS: dict[str, tuple[str, ...]] = {
    "hg status": ("hg", "status"),
    "hg --version -q": ("hg", "--version", "-q"),
    "black --version": ("black", "--version"),
    "http --version": ("http", "--version"),
    "aws --version": ("aws", "--version"),
    "ansible --version": ("ansible", "--version"),
}
LEARNING_RUNS = 6
"""Runs before the first measured one; servers learn in the background meanwhile."""
SETTLE_S = 2.0
"""Pause after each of them: learning imports everything once or twice."""
DROPPED = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "UNSNARL")

Runs = dict[str, dict[str, list[float]]]


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


def variants(words: tuple[str, ...], bin_dir: Path, scratch: Path, chg: str | None) -> dict[str, list[str]]:
    """Return the command lines to compare; the first is the base."""
    plain = [str(bin_dir / words[0]), *words[1:]]
    found = {"plain": plain, "warm": [str(bin_dir / "unsnarl"), "warm", "run", "--", *plain]}
    pack = scratch / f"{words[0]}.pack"
    record = ["pack", plain[0], "-o", str(pack), "--with", " ".join(words[1:])]
    subprocess.run([str(bin_dir / "unsnarl"), *record], check=True, stdout=subprocess.DEVNULL)
    found["packed"] = [str(pack.with_suffix("")), *words[1:]]
    if chg and words[0] == "hg":
        found["chg"] = [chg, *words[1:]]
    return found


def repository(directory: Path, bin_dir: Path) -> None:
    """Make a repository of 200 files in the current directory's stead."""
    for number in range(200):
        (directory / f"file{number}").write_text(f"{number}\n")
    hg = str(bin_dir / "hg")
    if os.path.exists(hg):
        for words in (["init"], ["add", "-q"], ["commit", "-q", "-m", "all", "-u", "bench"]):
            subprocess.run([hg, *words], cwd=directory, check=True)


def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """Measure all commands that are there."""
    bin_dir = Path(arguments.bin).absolute()
    runs: Runs = {}
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-") as name:
        scratch = Path(name)
        environ = {key: value for key, value in os.environ.items() if key not in DROPPED}
        environ |= {"UNSNARL_WARM_DIR": str(scratch / "house"), "CHGHG": str(bin_dir / "hg")}
        (scratch / "repository").mkdir()
        repository(scratch / "repository", bin_dir)
        os.chdir(scratch / "repository")
        for label, words in COMMANDS.items():
            if (bin_dir / words[0]).exists() and (not arguments.only or words[0] in arguments.only):
                runs[label] = one(variants(words, bin_dir, scratch, arguments.chg), environ, arguments.rounds)
        subprocess.run([str(bin_dir / "unsnarl"), "warm", "stop"], env=environ, check=False)
        os.chdir("/")
    where = {"python": sys.version, "machine": platform.platform(), "cpus": os.cpu_count()}
    return {"where": where, "rounds": arguments.rounds, "seconds": runs}


def one(lines: dict[str, list[str]], environ: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return the times of every variant of one command, round by round in alternation."""
    for _ in range(LEARNING_RUNS):
        for argv in lines.values():
            spawn_s(argv, environ)
        time.sleep(SETTLE_S)
    times: dict[str, list[float]] = {variant: [] for variant in lines}
    for _ in range(rounds):
        for variant, argv in lines.items():
            times[variant].append(spawn_s(argv, environ))
    return times


def render(data: dict[str, object]) -> str:
    """Return the results as a Markdown table: medians in ms, and their ratio to plain."""
    rows = ["| command | variant | min ms | median ms | ratio |", "|---|---|---|---|---|"]
    runs: Runs = data["seconds"]  # type: ignore[assignment]
    for label, times in runs.items():
        base = statistics.median(times["plain"])
        for variant, values in times.items():
            median = statistics.median(values)
            rows.append(
                f"| `{label}` | {variant} | {min(values) * 1e3:.1f} | {median * 1e3:.1f} | {median / base:.3f} |"
            )
    return "\n".join(rows) + "\n"


def main() -> None:
    """Measure, or render what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", help="directory of the commands and of unsnarl")
    parser.add_argument("--chg", help="path of Mercurial's own client, to compare with")
    parser.add_argument("--only", nargs="*", help="commands to measure, by name")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--out", help="file to write the results to")
    parser.add_argument("--render", help="file of results to show")
    arguments = parser.parse_args()
    if arguments.render:
        data = json.loads(Path(arguments.render).read_text())
    else:
        data = measure(arguments)
        if arguments.out:
            Path(arguments.out).write_text(json.dumps(data, indent=1))
    sys.stdout.write(render(data))


if __name__ == "__main__":
    main()
