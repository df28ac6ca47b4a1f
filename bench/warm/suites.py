"""Work that starts commands many times: `pre-commit`, `tox`, `ansible-playbook`, and tests of linters in subprocesses.

    python -m bench.warm.suites --unsnarl VENV/bin/unsnarl --bin VENV/bin … --only NAME … --out FILE
    python -m bench.warm.suites --render FILE > PAGE

Every command of a case is enabled (``unsnarl warm enable``), and its shim comes first in ``PATH``: nothing else is set.
Three variants take turns, round by round: plain, plain once more (what two equal variants differ by), and warm. *Fresh*
begins with an empty runtime directory, so learning is among what is measured; *prepared* begins after ``unsnarl warm
learn`` and one round that is not measured. Processor time includes everything in the background
(:class:`bench.warm.account.Caller`); other programs of the machine are not in it, but make all times longer.

| case | one round |
|---|---|
| ``pre-commit`` | ``pre-commit run --all-files`` with six Python hooks |
| ``tox`` | ``tox run`` of three environments that exist, each of which runs ``flake8`` |
| ``ansible-playbook`` | a playbook with 30 tasks on the machine itself |
| ``flake8``, ``black`` | pytest with thirty tests, each of which runs the command in a subprocess |
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench import machine
from bench.warm.account import VARIANTS, Caller, environment, parsed, settle

ROUNDS = {"pre-commit": 4, "tox": 3, "ansible-playbook": 2, "flake8": 3, "black": 3}
HOOKS = {
    "black": "black --check", "isort": "isort --check", "flake8": "flake8", "bandit": "bandit -q",
    "codespell": "codespell", "pylint": "pylint --disable=all --enable=E",
}  # fmt: skip
COMMANDS = {
    "pre-commit": ["pre-commit", *HOOKS], "tox": ["tox", "flake8"], "ansible-playbook": ["ansible-playbook"],
    "flake8": ["flake8"], "black": ["black"],
}  # fmt: skip
WORDS = {
    "pre-commit": ["pre-commit", "run", "--all-files"], "tox": ["tox", "run"],
    "ansible-playbook": ["ansible-playbook", "-i", "hosts", "play.yml"],
    "flake8": ["python", "-m", "pytest", "-q", "test_command.py"],
    "black": ["python", "-m", "pytest", "-q", "test_command.py"],
}  # fmt: skip
TASKS, TESTS = 30, 30
FRESH_GOAL, PREPARED_GOAL = 1.02, 0.3
"""The largest ratios to plain; the second one only where over half of a round is the start of commands."""
MOSTLY_START = {"flake8", "black"}
WATCHDOG_S = 3600

Outcome = dict[str, Any]


def write(work: Path, name: str) -> None:
    """Write the files of a case."""
    (work / "ok.py").write_text('"""A module."""\n\nVALUE = 1\n')
    if name == "pre-commit":
        hooks = "".join(
            f"      - {{id: {hook}, name: {hook}, entry: {entry}, language: system, types: [python]}}\n"
            for hook, entry in HOOKS.items()
        )
        (work / ".pre-commit-config.yaml").write_text(f"repos:\n  - repo: local\n    hooks:\n{hooks}")
        for words in (["init", "-q"], ["add", "."]):
            subprocess.run(["git", *words], cwd=work, check=True)
    elif name == "tox":
        (work / "tox.ini").write_text(
            "[tox]\nno_package = true\nenv_list = one, two, three\n"
            "[testenv]\nallowlist_externals = flake8\ncommands = flake8 ok.py\n"
        )
    elif name == "ansible-playbook":
        (work / "hosts").write_text("localhost ansible_connection=local\n")
        tasks = "".join(f"    - command: echo {number}\n" for number in range(TASKS))
        (work / "play.yml").write_text(f"- hosts: localhost\n  gather_facts: false\n  tasks:\n{tasks}")
    else:
        (work / "test_command.py").write_text(
            "import subprocess\nimport pytest\n\n\n"
            f"@pytest.mark.parametrize('number', range({TESTS}))\n"
            "def test_it_accepts_the_file(tmp_path, number):\n"
            "    (tmp_path / 'ok.py').write_text(f'VALUE = {number}\\n')\n"
            f"    subprocess.run([{name!r}, 'ok.py'], cwd=tmp_path, check=True)\n"
        )


def measure(name: str, arguments: argparse.Namespace, scratch: Path, *, is_prepared: bool) -> Outcome:
    """Run the rounds of a case in all variants; return wall seconds a round, and processor seconds in all."""
    work = scratch / "work"
    work.mkdir()
    write(work, name)
    path = f"{':'.join(map(str, arguments.bin))}:/usr/bin:/bin"
    environ = environment(scratch, path) | {"XDG_DATA_HOME": str(scratch / "data")}
    enable = [arguments.unsnarl, "warm", "enable", *COMMANDS[name]]
    subprocess.run(enable, env=environ, check=True, stdout=subprocess.DEVNULL)
    warm = environ | {"PATH": f"{scratch}/data/unsnarl/shims:{path}"}
    words = [shutil.which(WORDS[name][0], path=path) or WORDS[name][0], *WORDS[name][1:]]
    _checked(words, environ, work)  # environments are made, bytecode is cached
    if is_prepared:
        for command in COMMANDS[name]:
            subprocess.run([arguments.unsnarl, "warm", "learn", command], env=environ, cwd=work, check=False,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        _checked([WORDS[name][0], *words[1:]], warm, work)
    found = _alternated(words, environ, warm, work, ROUNDS[name])
    subprocess.run([arguments.unsnarl, "warm", "stop"], env=environ, check=False, stdout=subprocess.DEVNULL)
    return found


def _checked(words: list[str], environ: dict[str, str], work: Path) -> None:
    done = subprocess.run(words, env=environ, cwd=work, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words} fails: {done.stdout[-500:]}{done.stderr[-500:]}")


def _alternated(words: list[str], plain: dict[str, str], warm: dict[str, str], work: Path, rounds: int) -> Outcome:
    # The shell looks the first word up in the variant's PATH; it is a part of each variant.
    shell = ["/bin/sh", "-c", 'exec "$@"', "sh", os.path.basename(words[0]), *words[1:]]
    callers = {name: Caller(shell, warm if name == "warm" else plain, work) for name in VARIANTS}
    wall_s: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for number in range(rounds):
        for name in VARIANTS if number % 2 else VARIANTS[::-1]:
            wall_s[name].append(callers[name].call(number))
    settle(Path(warm["UNSNARL_WARM_DIR"]))
    busy_s = {name: caller.busy_s() for name, caller in callers.items()}
    for caller in callers.values():
        caller.end()
    return {"wall_s": wall_s, "busy_s": busy_s}


def rows(cases: dict[str, Outcome]) -> Iterator[tuple[float, str]]:
    """Yield the rows of the table, each with how far it is from its goal: above 1 is a loss."""
    for label, case in sorted(cases.items()):
        name, _, state = label.partition(", ")
        wall = {each: sum(times) / sum(case["wall_s"]["plain"]) for each, times in case["wall_s"].items()}
        busy = {each: seconds / case["busy_s"]["plain"] for each, seconds in case["busy_s"].items()}
        goal = PREPARED_GOAL if state == "prepared" and name in MOSTLY_START else FRESH_GOAL
        worst = max(wall["warm"], busy["warm"]) / goal
        numbers = [f"{each:.3f}" for each in (wall["warm"], wall["again"], busy["warm"], busy["again"])]
        seconds = f"{statistics.median(case['wall_s']['plain']):.2f}"
        cells = [name, state, str(len(case["wall_s"]["plain"])), seconds, *numbers, f"≤ {goal}"]
        yield worst, f"| {' | '.join(cells)} | {'met' if worst <= 1 else '**missed**'} |\n"


def render(found: Outcome) -> str:
    """Return the page: what misses its goal first."""
    where = found["where"]
    loads = ", ".join(f"{label} {case['load']:.1f}" for label, case in sorted(found["cases"].items()))
    head = (
        "# Work that starts commands many times\n\n"
        f"CPython {where['python']['version']}, {where['cpu']}, {where['cores']} processors, Linux {where['kernel']};\n"
        f"unsnarl {where['commit']}. Load of the machine when it was measured, over the last minute:\n"
        f"{loads}.\n"
        "How it is measured: the head of `bench/warm/suites.py`, which has written this page. Ratios are to plain,\n"
        "over all rounds; `again` is plain a second time: what two equal variants differ by.\n\n"
        "| case | state | rounds | a plain round, s | wall | again | processors | again | goal | |\n"
        "|---|---|---|---|---|---|---|---|---|---|\n"
    )
    return head + "".join(row for _, row in sorted(rows(found["cases"]), key=lambda row: -row[0]))


def main() -> None:
    """Measure the named cases and add them to the results, or render them."""
    arguments = parsed(__doc__, list(ROUNDS))
    if arguments.render:
        sys.stdout.write(render(json.loads(arguments.render.read_text())))
        return
    found: Outcome = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"cases": {}}
    signal.alarm(WATCHDOG_S)
    for name in arguments.only:
        for state in ("fresh", "prepared"):
            with tempfile.TemporaryDirectory(prefix="unsnarl-bench-", ignore_cleanup_errors=True) as scratch:
                case = measure(name, arguments, Path(scratch), is_prepared=state == "prepared")
            found["cases"][f"{name}, {state}"] = case | {"load": os.getloadavg()[0]}
            found["where"] = machine.describe(str(arguments.bin[0] / "python"))
            arguments.out.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
