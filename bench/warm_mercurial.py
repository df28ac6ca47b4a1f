"""Mercurial's own tests, with hg plain and through a warm shim: who passes, wall time, processor time.

    python -m bench.warm_mercurial --source mercurial-7.2.4 --bin VENV/bin --out FILE [--jobs 2] [TEST.t ...]

``source`` is an unpacked release; ``VENV`` has mercurial of that version and
unsnarl. The two runs follow each other, one test run each; servers of the warm
run are started and learn within it. Processor time is the whole machine's, so
nothing else may run. ``HGTEST_UUIDFILE`` differs from test to test and is only
copied by hg at import: it is vouched for (``UNSNARL_WARM_IGNORE``), or each test
would need a server of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = """abort-checkin add addremove alias annotate backout bookmarks branches cat commit-amend copy diff-color
diff-unified encoding excessive-merge filebranch flags globalopts grep hgignore identify import-merge init
issue1175 issue322 issue586 journal-exists locate log-linerange merge-default merge-remove merge-revert merge1
merge10 merge2 merge5 mv-cp-st-diff newbranch parents push-warn rename revert-flags simple-update
status-color tag up-local-change update-names"""

Outcome = dict[str, Any]


def busy_s() -> float:
    """Return the seconds all processors together have worked since the start of the machine."""
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, softirq = map(int, words[:7])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def run(source: Path, hg: Path, tests: list[str], jobs: int, environ: dict[str, str]) -> Outcome:
    """Run the tests once and return their outcomes and times."""
    argv = [sys.executable, "run-tests.py", f"-j{jobs}", f"--with-hg={hg}", *tests]
    begin_s, begin_busy_s = time.perf_counter(), busy_s()
    said = subprocess.run(
        argv,
        cwd=source / "tests",
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    ).stdout
    times = {"wall_s": time.perf_counter() - begin_s, "busy_s": busy_s() - begin_busy_s}
    failed = sorted(set(re.findall(r"^Failed (\S+\.t)", said, re.MULTILINE)))
    skipped = sorted(set(re.findall(r"^Skipped (\S+\.t)", said, re.MULTILINE)))
    return {**times, "failed": failed, "skipped": skipped, "summary": said.strip().rpartition("\n# Ran ")[2]}


def main() -> None:
    """Run, write the outcomes, and print them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--bin", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_args()
    tests = arguments.tests or [f"test-{name}.t" for name in TESTS.split()]
    tests = [test for test in tests if (arguments.source / "tests" / test).exists()]
    programs = arguments.bin.absolute()
    with tempfile.TemporaryDirectory(prefix="unsnarl-bench-") as scratch:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "UNSNARL"))}
        environ |= {"UNSNARL_WARM_DIR": f"{scratch}/house", "XDG_DATA_HOME": scratch}
        environ |= {"UNSNARL_WARM_IGNORE": "HGTEST_UUIDFILE", "PATH": f"{programs}:{environ['PATH']}"}
        subprocess.run([programs / "unsnarl", "warm", "enable", programs / "hg"], env=environ, check=True)
        shim = Path(scratch, "unsnarl", "shims", "hg")
        outcomes: dict[str, Outcome] = {}
        for name, hg in (("plain", programs / "hg"), ("warm", shim)):
            outcomes[name] = run(arguments.source, hg, tests, arguments.jobs, environ)
        subprocess.run([programs / "unsnarl", "warm", "stop"], env=environ, check=False)
    arguments.out.write_text(json.dumps({"tests": tests, "jobs": arguments.jobs, **outcomes}, indent=1) + "\n")
    plain, warm = outcomes["plain"], outcomes["warm"]
    sys.stdout.write(
        f"{len(tests)} tests: wall {warm['wall_s'] / plain['wall_s']:.3f} of plain, "
        f"processor {warm['busy_s'] / plain['busy_s']:.3f}; fail warm only: "
        f"{sorted(set(warm['failed']) - set(plain['failed'])) or 'none'}\n"
    )


if __name__ == "__main__":
    main()
