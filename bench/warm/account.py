"""What warm costs where nothing is set and nothing was learned: few calls, many, ever new keys, and calls never served.

    python -m bench.warm.account --unsnarl VENV/bin/unsnarl --bin VENV1/bin VENV2/bin --only NAME … --out FILE
    python -m bench.warm.account --render FILE > docs/results/warm-account.md

Three variants take turns, call by call: plain, plain once more (what two equal variants differ by), and warm. Each has
a process of its own that starts the calls (:class:`Caller`) and adopts whatever a call leaves behind, so that the
processor time of a variant includes learning runs, servers and spares, ended or not. No other load may run.

| case | what is called |
|---|---|
| a command's name | ``NAME --version``, with marks after some numbers of calls; runtime directory and home are new |
| ``keys`` | a small script, each time with another value of ``TZ``, which is in every key |
| ``unserved`` | a script whose module prints while it is imported, which is known when the calls begin |
| ``makefile`` | ``make -j2`` of 200 rules, each of which runs ``python -m json.tool`` |
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import machine

VARIANTS = ("plain", "again", "warm")
MARKS = (1, 2, 3, 5, 10, 30, 60, 100, 200)
CALLS = {"aws": 200}
"""Calls of a command, 100 unless it is named here."""
KEYS, UNSERVED, RULES = 1000, 300, 200
WALL_GOAL, BUSY_GOAL, KEYS_GOAL, UNSERVED_GOAL_MS = 1.03, 1.10, 1.02, 1.5
"""The largest ratios to plain, and milliseconds above it."""
GAIN_GOAL = 0.3
"""The largest ratio to plain, of wall and processor time, of the cases that are mostly start-up: :data:`GAINS`."""
GAINS = {("makefile", RULES), ("aws", 200)}
EVEN_GOAL = 5
"""The call by which a command's processor time with warm is to be no more than plain's."""
BUSY, END = -1, -2
"""What a caller is asked for, beside the number of a call: its processor time, and to end."""
PR_SET_CHILD_SUBREAPER = 36
WATCHDOG_S = 60
DROPPED = ("PYTHON", "UNSNARL", "VIRTUAL_ENV")

Outcome = dict[str, Any]


class Caller:
    """A forked process that makes the calls of one variant, on request."""

    def __init__(self, words: list[str], environ: dict[str, str], cwd: Path) -> None:
        (theirs, self._ask), (self._answer, ours) = os.pipe(), os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ask)
            os.chdir(cwd)
            self._work(words, environ, theirs, ours)
            os._exit(0)
        os.close(theirs)
        os.close(ours)

    def call(self, number: int) -> float:
        """Make one call; return its seconds, from spawn to wait."""
        return self._asked(number)

    def busy_s(self) -> float:
        """Return the processor seconds of all calls so far, and of what they have left in the background."""
        return self._asked(BUSY)

    def end(self) -> None:
        """End the process."""
        os.write(self._ask, END.to_bytes(4, "little", signed=True))
        os.waitpid(self._pid, 0)
        os.close(self._ask)
        os.close(self._answer)

    def _asked(self, number: int) -> float:
        os.write(self._ask, number.to_bytes(4, "little", signed=True))
        return float(os.read(self._answer, 64))

    @staticmethod
    def _work(words: list[str], environ: dict[str, str], asked: int, answer: int) -> None:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)]
        while (number := int.from_bytes(os.read(asked, 4), "little", signed=True)) != END:
            if number == BUSY:
                found = _descendants_busy_s()
            else:
                begun_s = time.perf_counter()
                env = {name: value.replace("{number}", str(number)) for name, value in environ.items()}
                os.waitpid(os.posix_spawnp(words[0], words, env, file_actions=null), 0)
                found = time.perf_counter() - begun_s
            os.write(answer, repr(found).encode())


def _descendants_busy_s() -> float:
    """Return the processor seconds of all children of this process, ended or not, and of theirs."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass
    ended = os.times()
    return ended.children_user + ended.children_system + sum(_ticks(pid) for pid in _children(os.getpid()))


def _ticks(pid: int) -> float:
    """Return the processor seconds of a process, of its ended children, and of its living ones."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has just ended; the next mark has it
    return sum(map(int, words[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(_ticks, _children(pid)))


def _children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def environment(scratch: Path, path: str) -> dict[str, str]:
    """Return an environment with nothing of unsnarl's set but the runtime directory, and an empty home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    (scratch / "home").mkdir(exist_ok=True)
    return kept | {"PATH": path, "HOME": str(scratch / "home"), "UNSNARL_WARM_DIR": str(scratch / "runtime")}


def alternate(unsnarl: Path, words: list[str], calls: int, environ: dict[str, str], cwd: Path) -> Outcome:
    """Make the calls of all variants in turn; return wall seconds a call, and processor seconds at the marks."""
    warm = [str(unsnarl), "warm", "run", "--", *words]
    callers = {name: Caller(warm if name == "warm" else words, environ, cwd) for name in VARIANTS}
    wall_s: dict[str, list[float]] = {name: [] for name in VARIANTS}
    busy_s: dict[str, dict[str, float]] = {name: {} for name in VARIANTS}
    for number in range(1, calls + 1):
        order = VARIANTS if number % 2 else VARIANTS[::-1]
        for name in order:
            wall_s[name].append(callers[name].call(number))
        if number in MARKS or number == calls:
            settle(Path(environ["UNSNARL_WARM_DIR"]))
            for name in VARIANTS:
                busy_s[name][str(number)] = callers[name].busy_s()
    subprocess.run([unsnarl, "warm", "stop"], env=environ, check=False, stdout=subprocess.DEVNULL)
    ledgers = "".join(path.read_text() for path in Path(environ["UNSNARL_WARM_DIR"]).glob("*.ledger"))
    for caller in callers.values():
        caller.end()
    return {"wall_s": wall_s, "busy_s": busy_s, "ledger": ledgers.splitlines()}


def settle(runtime: Path) -> None:
    """Wait until no learning run is in progress."""
    ends_s = time.monotonic() + WATCHDOG_S
    while any(runtime.glob("learn-*")) and time.monotonic() < ends_s:
        time.sleep(0.05)


def command(name: str, arguments: argparse.Namespace, scratch: Path) -> Outcome:
    """Measure the calls of a command."""
    path = ":".join(map(str, arguments.bin))
    words = [shutil.which(name, path=path) or name, "--version"]
    environ = environment(scratch, f"{path}:/usr/bin:/bin")
    return alternate(arguments.unsnarl, words, CALLS.get(name, 100), environ, scratch)


def script(scratch: Path, python: Path, module: str) -> list[str]:
    """Write a script that imports a module, which is given."""
    (scratch / "part.py").write_text(module)
    path = scratch / "small"
    path.write_text(f"#!{python}\nimport json, argparse, part\n")
    path.chmod(0o755)
    return [str(path)]


def keys(arguments: argparse.Namespace, scratch: Path) -> Outcome:
    """Measure calls with ever new keys."""
    words = script(scratch, arguments.bin[0] / "python", "")
    environ = environment(scratch, "/usr/bin:/bin") | {"TZ": "UTC{number}"}
    return alternate(arguments.unsnarl, words, KEYS, environ, scratch)


def unserved(arguments: argparse.Namespace, scratch: Path) -> Outcome:
    """Measure calls that no server can take, of which that is known."""
    words = script(scratch, arguments.bin[0] / "python", "print('part')\n")
    environ = environment(scratch, "/usr/bin:/bin")
    start = [arguments.unsnarl, "warm", "start", "--", *words]
    subprocess.run(start, env=environ, check=False, stderr=subprocess.DEVNULL)
    return alternate(arguments.unsnarl, words, UNSERVED, environ, scratch)


def makefile(arguments: argparse.Namespace, scratch: Path) -> Outcome:
    """Measure `make` with 200 rules in each variant; the second plain one comes last."""
    targets = " ".join(f"out{number}" for number in range(RULES))
    (scratch / "in.json").write_text(json.dumps({"list": [*range(100)]}))
    (scratch / "Makefile").write_text(f"all: {targets}\nout%:\n\t$(PY) -m json.tool in.json > $@\n")
    environ = environment(scratch, "/usr/bin:/bin")
    python = arguments.bin[0] / "python"
    found: Outcome = {"wall_s": {}, "busy_s": {}, "ledger": []}
    for name in ("plain", "warm", "again"):
        for path in scratch.glob("out*"):
            path.unlink()
        start = f"{arguments.unsnarl} warm run -- {python}" if name == "warm" else str(python)
        caller = Caller(["make", "-s", "-j2", f"PY={start}"], environ, scratch)
        found["wall_s"][name] = [caller.call(1)]
        settle(scratch / "runtime")
        found["busy_s"][name] = {"1": caller.busy_s()}
        subprocess.run([arguments.unsnarl, "warm", "stop"], env=environ, check=False, stdout=subprocess.DEVNULL)
        caller.end()
    return found


OTHERS = {"keys": keys, "unserved": unserved, "makefile": makefile}


def rows(cases: dict[str, Outcome]) -> Iterator[tuple[float, str]]:
    """Yield the rows of the table, each with how far it is from its goal: above 1 is a loss."""
    for name, case in sorted(cases.items()):
        wall, busy = case["wall_s"], case["busy_s"]
        if name == "unserved":
            middle = {each: 1000 * statistics.median(times) for each, times in wall.items()}
            more, noise = middle["warm"] - middle["plain"], middle["again"] - middle["plain"]
            cells = [name, str(UNSERVED), f"+{more:.2f} ms", f"{noise:+.2f} ms", "", "", f"+{UNSERVED_GOAL_MS} ms"]
            yield more / UNSERVED_GOAL_MS, _row(cells, is_met=more <= UNSERVED_GOAL_MS)
            continue
        for mark in busy["plain"]:
            count = int(mark)
            ratio = {each: sum(wall[each][:count]) / sum(wall["plain"][:count]) for each in VARIANTS}
            load = {each: busy[each][mark] / busy["plain"][mark] for each in VARIANTS}
            goals = _goals(name, RULES if name == "makefile" else count)
            worst = max(ratio["warm"] / goals[0], load["warm"] / goals[1])
            calls = str(RULES) if name == "makefile" else mark
            numbers = [f"{each:.3f}" for each in (ratio["warm"], ratio["again"], load["warm"], load["again"])]
            yield worst, _row([name, calls, *numbers, f"{goals[0]}, {goals[1]}"], is_met=worst <= 1)
        if name not in OTHERS:
            yield _break_even(name, busy)


def _goals(name: str, count: int) -> tuple[float, float]:
    if (name, count) in GAINS:
        return GAIN_GOAL, GAIN_GOAL
    return (KEYS_GOAL, KEYS_GOAL) if name in OTHERS else (WALL_GOAL, BUSY_GOAL)


def _break_even(name: str, busy: dict[str, dict[str, float]]) -> tuple[float, str]:
    """Return the row of the first mark from which on a command's processor time is below plain's."""
    marks = sorted(busy["plain"], key=int)
    above = [int(mark) for mark in marks if busy["warm"][mark] >= busy["plain"][mark]]
    first = next((int(mark) for mark in marks if int(mark) > max(above, default=0)), None)
    said = "more than were made" if first is None else f"at most {first}"
    distance = (int(marks[-1]) if first is None else first) / EVEN_GOAL
    cells = [name, f"to break even: {said}", "", "", "", "", f"{EVEN_GOAL} calls"]
    return distance, _row(cells, is_met=first is not None and first <= EVEN_GOAL)


def _row(cells: list[str], *, is_met: bool) -> str:
    return f"| {' | '.join(cells)} | {'met' if is_met else '**missed**'} |\n"


def render(found: Outcome) -> str:
    """Return the page: what misses its goal first."""
    where = found["where"]
    head = (
        "# Warm from a fresh state\n\n"
        f"CPython {where['python']['version']}, {where['cpu']}, {where['cores']} processors, Linux {where['kernel']};\n"
        f"unsnarl {where['commit']}.\n"
        "How it is measured: the head of `bench/warm/account.py`, which has written this page. Ratios are to plain,\n"
        "over all calls up to that number; processor time includes everything in the background. `again` is plain a\n"
        "second time: what two equal variants differ by.\n\n"
        "| calls of | number | wall | again | processors | again | goals: wall, processors | |\n"
        "|---|---|---|---|---|---|---|---|\n"
    )
    table = sorted(rows(found["cases"]), key=lambda row: -row[0])
    spent = [f"- `{name}`: {', '.join(case['ledger'])}\n" for name, case in found["cases"].items() if case["ledger"]]
    ledgers = "\nThe ledgers at the end, in milliseconds of processor time:\n\n" if spent else ""
    return head + "".join(row for _, row in table) + ledgers + "".join(spent)


def parsed(description: str | None, only: list[str]) -> argparse.Namespace:
    """Return the arguments of a measurement of named cases, by default of ``only``, or of its rendering."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unsnarl", type=Path)
    parser.add_argument("--bin", type=Path, nargs="+")
    parser.add_argument("--only", nargs="+", default=only)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--render", type=Path)
    arguments = parser.parse_args()
    if not (arguments.render or (arguments.unsnarl and arguments.bin and arguments.out)):
        parser.error("--unsnarl, --bin and --out are needed, or --render")
    return arguments


def main() -> None:
    """Measure the named cases and add them to the results, or render them."""
    arguments = parsed(__doc__, ["pip", "black", "http", "aws", "hg", *OTHERS])
    if arguments.render:
        sys.stdout.write(render(json.loads(arguments.render.read_text())))
        return
    found: Outcome = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"cases": {}}
    signal.alarm(3600)  # a watchdog for all of it
    for name in arguments.only:
        with tempfile.TemporaryDirectory(prefix="unsnarl-bench-", ignore_cleanup_errors=True) as scratch:
            measured = (
                OTHERS[name](arguments, Path(scratch)) if name in OTHERS else command(name, arguments, Path(scratch))
            )
        found["cases"][name] = measured
        found["where"] = machine.describe(str(arguments.bin[0] / "python"))
        arguments.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
