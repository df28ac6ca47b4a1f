"""What the report of a large trace costs: the time to write it, its size, and its opening in a browser.

    python -m bench.trace_page [--threads N] [--seconds S] [--openings N] --out FILE
    python -m bench.trace_page --render FILE... > docs/results/trace-page.md

A program of many threads, which sleep and compute shortly, is traced. Then `unsnarl trace --read` writes the report of
the kept recordings; its processor time is that of the process. Headless Chromium opens the page and, in turn, an empty
page. A script at the end of each page notes the time since the navigation began: the page's own scripts have then drawn
the timeline. Memory is the largest sum of proportional set sizes (`Pss`) of the browser's processes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from bench import machine
from bench.markdown import table

GOALS = {"report_s": 5.0, "page_mb": 5.0, "ready_s": 2.0, "page_memory_mb": 500.0}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
LIMIT_S = 300.0
POLL_S = 0.05

PROGRAM = """
import random, sys, threading, time
threads, end = int(sys.argv[1]), time.monotonic() + float(sys.argv[2])
def work(number):
    chance = random.Random(number)
    while time.monotonic() < end:
        time.sleep(0.05 + chance.random() * 0.1)
        sum(range(chance.randrange(500, 4000)))
threading.stack_size(256 * 1024)
started = [threading.Thread(target=work, args=(number,), name=f"worker-{number}") for number in range(threads)]
for thread in started:
    thread.start()
for thread in started:
    thread.join()
"""

PROBE = """<script>
(() => {
  const ready_ms = performance.now(), seen = document.createElement("pre");
  seen.id = "seen";
  seen.textContent = JSON.stringify({ ready_ms, ready: document.body.dataset.ready || "" });
  document.body.append(seen);
})();
</script></body>"""


def record(folder: Path, threads: int, seconds: float) -> Path:
    """Trace the program; return the directory of its recordings."""
    program = folder / "app.py"
    program.write_text(PROGRAM)
    words = ["trace", "--keep", "--size", "256", "--output", "first.html", str(program), str(threads), str(seconds)]
    subprocess.run(
        [sys.executable, "-m", "unsnarl", *words], cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=LIMIT_S
    )
    (recordings,) = (path for path in folder.glob(".unsnarl-trace-*") if path.is_dir())
    return recordings


def write_report(folder: Path, recordings: Path) -> dict[str, float]:
    """Write the report of recordings once more; return its times and sizes."""
    before, began_s = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    words = ["trace", "--read", str(recordings), "--output", "page.html"]
    subprocess.run(
        [sys.executable, "-m", "unsnarl", *words], cwd=folder, check=True, stderr=subprocess.DEVNULL, timeout=LIMIT_S
    )
    elapsed_s, after = time.perf_counter() - began_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "report_s": elapsed_s,
        "report_cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "page_mb": (folder / "page.html").stat().st_size / 1e6,
        "json_mb": (folder / "page.json").stat().st_size / 1e6,
    }


def descendants(root: int) -> set[int]:
    """Return a process and all that descend from it."""
    parents: dict[int, int] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            parents[int(name)] = int(Path("/proc", name, "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, added = {root}, {root}
    while added:
        added = {pid for pid, parent in parents.items() if parent in found} - found
        found |= added
    return found


def memory_mb(root: int) -> float:
    """Return the sum of the proportional set sizes of a process and its descendants."""
    total = 0
    for pid in descendants(root):
        try:
            found = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE)
        except OSError:
            continue
        total += int(found[1]) if found else 0
    return total / 1024


def opened(browser: str, page: Path) -> dict[str, Any]:
    """Open a page in a browser that starts for it; return when its scripts were done, and the browser's memory."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
        words += ["--window-size=1400,900", "--dump-dom", page.as_uri()]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
            most, is_over = [0.0], threading.Event()

            def watch() -> None:
                while not is_over.wait(POLL_S):
                    most[0] = max(most[0], memory_mb(started.pid))

            watcher = threading.Thread(target=watch)
            watcher.start()
            try:
                shown, _ = started.communicate(timeout=LIMIT_S)
            finally:
                is_over.set()
                watcher.join()
    seen = re.search(r'<pre id="seen">(.*?)</pre>', shown)
    if seen is None:
        raise SystemExit(f"error: {browser} did not show {page.name}\nhint: open it by hand")
    return {**json.loads(seen[1]), "memory_mb": most[0]}


def measure(threads: int, seconds: float, openings: int) -> dict[str, Any]:
    """Return every figure, with a description of the machine."""
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if browser is None:
        raise SystemExit("error: there is no Chromium\nhint: scripts/browser installs one")
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures: dict[str, Any] = write_report(folder, record(folder, threads, seconds))
        page, empty = folder / "page.html", folder / "empty.html"
        empty.write_text(f"<!doctype html><html><body>{PROBE}</html>")
        page.write_text(page.read_text().replace("</body>", PROBE))
        for _ in range(openings):
            for what, path in (("empty", empty), ("page", page)):
                figures.setdefault(what, []).append(opened(browser, path))
    return {
        "machine": machine.describe(sys.executable),
        "browser": machine.first_line(browser, "--version"),
        "load": [before, os.getloadavg()[0]],
        "threads": threads,
        "seconds": seconds,
        "figures": figures,
    }


def rendered(document: dict[str, Any]) -> str:
    """Return one measurement as Markdown."""
    figures, of = document["figures"], document["machine"]
    page, empty = (
        {name: statistics.median(run[name] for run in figures[what]) for name in ("ready_ms", "memory_mb")}
        for what in ("page", "empty")
    )
    values = {
        "report_s": figures["report_s"],
        "page_mb": figures["page_mb"],
        "ready_s": page["ready_ms"] / 1e3,
        "page_memory_mb": page["memory_mb"] - empty["memory_mb"],
    }
    words = {
        "report_s": f"the report is written, s (processor time {figures['report_cpu_s']:.1f})",
        "page_mb": "size of the page, MB",
        "ready_s": f"the page is drawn, s after the navigation (an empty page: {empty['ready_ms'] / 1e3:.2f})",
        "page_memory_mb": f"memory of the browser, MB more than with an empty page "
        f"({empty['memory_mb']:.0f}; all together {page['memory_mb']:.0f})",
    }
    rows = [
        (words[name], f"{value:.2f}", f"≤ {GOALS[name]:g}", "met" if value <= GOALS[name] else "missed")
        for name, value in values.items()
    ]
    load = " to ".join(f"{value:.1f}" for value in document["load"])
    return (
        f"### {document['threads']:,} threads for {document['seconds']:g} s, CPython {of['python']['version']}\n\n"
        f"On {of['cpu']}, {of['cores']} cores, Linux {of['kernel']}, {of['taken'][:10]}, sources {of['commit']}; "
        f"{document['browser']}. Load of the machine: {load}. Medians of {len(figures['page'])} openings; "
        f"`trace.json` has {figures['json_mb']:.0f} MB.\n\n" + table(("", "measured", "goal", ""), rows)
    )


INTRODUCTION = """# The report of a large trace

Rendered from `bench/results/trace_page-*.json`, written by `python -m bench.trace_page`, which says how it measures.
"""


def main() -> int:
    """Measure, or render the results of files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--openings", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--render", type=Path, nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.render:
        print(INTRODUCTION)
        print("\n".join(rendered(json.loads(path.read_text())) for path in arguments.render), end="")
        return 0
    document = measure(arguments.threads, arguments.seconds, arguments.openings)
    if arguments.out:
        arguments.out.write_text(json.dumps(document, indent=1) + "\n")
    print(rendered(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
