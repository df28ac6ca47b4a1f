"""Every command people use: the same output, status and files plain and warm, in pipes and on a terminal.

    python -m bench.warm.every --unsnarl VENV/bin/unsnarl --bin VENV/bin … --out FILE
    python -m bench.warm.every --render FILE > PAGE

``bench/warm/every.json`` is the manifest: commands, and the files of the directory in which each runs. A command that
is in none of the directories of ``--bin`` is left out, and the page says so.

Each command runs plainly once, so that bytecode is cached, then twice in different seconds, so that times differ, and,
once its server has learned, warm. Before each run the directory, the home and the
temporary directory get the manifest's content again. Lines and files in which the two plain runs differ (times, process
numbers) are compared with nothing; all others must be equal. Cached bytecode is
not compared: a server that has imported a module writes it once. Nothing is measured here but sameness.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import fcntl
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path
from typing import Any

from bench import machine
from unsnarl.doctor.warmth import NOT_WARM
from unsnarl.lab.running.commands import wait_until_learned

MANIFEST = Path(__file__).with_suffix(".json")
WATCHDOG_S = 120
LEARNING_RUNS = 2
"""Runs by which a server learns what the command loads later than its imports."""
SECOND_S = 1.0
"""Seconds between two runs whose texts and files show the time in seconds."""
WAYS = ("pipes", "terminal")
DROPPED = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "UNSNARL", "PYTHONPATH", "VIRTUAL_ENV")
MOMENT_S = 1_700_000_000
"""Time of the manifest's files, in seconds since the epoch."""
DRAWN = re.compile(r"(?<=/)tmp[a-z0-9_]{8}(?=/|$)|\d{4}-\d\d-\d\d[T_-]\d\d[:-]?\d\d[:-]?\d\d(?:\.\d+)?")
"""A name that `tempfile` has drawn, or a moment in a name (the logs of snakemake): another one in each run."""
SHOWN_LINES = 6
"""Most lines of a difference that are kept."""


class Place:
    """A directory, a home and a temporary directory, whose content is restored before each run."""

    def __init__(self, scratch: Path, files: dict[str, list[str]], bin_dir: str) -> None:
        self._files = files
        self.work, self.home, self.temporary = (scratch / name for name in ("work", "home", "tmp"))
        self.runtime = scratch / "runtime"
        for directory in (self.work, self.home, self.temporary):
            directory.mkdir()
        own = {name: value for name, value in os.environ.items() if name not in DROPPED}
        self.environ = own | {
            "HOME": str(self.home), "TMPDIR": str(self.temporary), "UNSNARL_WARM_DIR": str(self.runtime),
            "PATH": f"{bin_dir}:/usr/local/bin:/usr/bin:/bin", "TERM": "xterm", "PAGER": "cat", "PYTHONHASHSEED": "0",
            "UNSNARL_WARM_SPEND": "any",
        }  # fmt: skip

    def restore(self) -> None:
        """Give the directories the manifest's files and no others. What is as it was stays: programs watch it."""
        for directory in (self.work, self.home, self.temporary):
            for path in sorted(directory.rglob("*"), reverse=True):
                name = str(path.relative_to(self.work)) if directory == self.work else ""
                is_wanted = name in self._files or any(wanted.startswith(f"{name}/") for wanted in self._files if name)
                if not is_wanted:
                    path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        for name, lines in self._files.items():
            self._write(self.work / name, lines)

    def _write(self, path: Path, lines: list[str]) -> None:
        text, mode = "".join(f"{line}\n" for line in lines), 0o755 if lines[:1] and lines[0][:2] == "#!" else 0o644
        if path.exists() and path.read_text() == text and path.stat().st_mtime == MOMENT_S:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        os.utime(path, (MOMENT_S, MOMENT_S))

    def files(self) -> dict[str, str]:
        """Return kind, mode and a digest of all that is there; names that differ from run to run are left out."""
        found: dict[str, list[str]] = {}
        for top in (self.work, self.home, self.temporary):
            for path in sorted(top.rglob("*")):
                if "__pycache__" in path.parts:
                    continue
                mode = path.lstat().st_mode
                content = path.read_bytes() if path.is_file() else b""
                name = DRAWN.sub("…", str(path.relative_to(top.parent)))
                found.setdefault(name, []).append(f"{mode:o} {hashlib.sha256(content).hexdigest()[:16]}")
        return {name: ", ".join(sorted(each)) for name, each in found.items()}


def run(argv: list[str], place: Place, way: str) -> dict[str, Any]:
    """Run a command in a restored place; return status, output and files."""
    place.restore()
    if way == "pipes":
        done = subprocess.run(
            argv, cwd=place.work, env=place.environ, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=WATCHDOG_S, check=False,
        )  # fmt: skip
        shown = {"stdout": done.stdout, "stderr": done.stderr}
        status = done.returncode
    else:
        status, output = on_terminal(argv, place)
        shown = {"terminal": output}
    texts = {name: data.decode(errors="backslashreplace") for name, data in shown.items()}
    return {"status": status, "files": place.files(), **texts}


def on_terminal(argv: list[str], place: Place) -> tuple[int, bytes]:
    """Run a command with a terminal as its standard streams; return status and output."""
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=place.work, env=place.environ)
    watchdog = threading.Timer(WATCHDOG_S, process.kill)
    watchdog.start()
    os.close(theirs)
    shown = b""
    with contextlib.suppress(OSError):  # EIO: no process has the terminal open
        while data := os.read(ours, 65536):
            shown += data
    os.close(ours)
    status = process.wait()
    watchdog.cancel()
    return status, shown


def one(argv: list[str], place: Place, unsnarl: str, way: str) -> dict[str, Any]:
    """Compare a command plain and warm in one way."""
    run(argv, place, way)
    plain = run(argv, place, way)
    time.sleep(SECOND_S)
    again = run(argv, place, way)
    warm_argv = [unsnarl, "warm", "run", "--", *argv]
    place.restore()
    if way == "pipes":
        start = [unsnarl, "warm", "start", "--", *argv]
        subprocess.run(start, cwd=place.work, env=place.environ, capture_output=True, check=False)
    else:
        on_terminal([unsnarl, "warm", "start", "--", *argv], place)
    for _ in range(LEARNING_RUNS):
        run(warm_argv, place, way)
        if any(place.runtime.glob("*.sock")):
            wait_until_learned(place.runtime)
    strict = run([unsnarl, "warm", "run", "--require", "--", *argv], place, way)
    text = strict.get("stderr", "") + strict.get("terminal", "")
    is_served = not (strict["status"] == NOT_WARM and "no warm worker took the command" in text)
    warm = strict if is_served else run(warm_argv, place, way)
    differing = differences(plain, again, warm)
    found: dict[str, Any] = {"status": plain["status"], "served": is_served, "differences": differing}
    if not is_served:
        found["reason"] = reason(argv, place, unsnarl, way)
    return found


def reason(argv: list[str], place: Place, unsnarl: str, way: str) -> str:
    """Return in the words of ``unsnarl warm why`` why the command is not served."""
    why = [unsnarl, "warm", "why", "--", *argv]
    if way == "terminal":
        shown = on_terminal(why, place)[1]
    else:
        done = subprocess.run(why, cwd=place.work, env=place.environ, capture_output=True, check=False)
        shown = done.stdout + done.stderr
    lines = shown.decode(errors="replace").replace("\r", "").splitlines() or [""]
    if " runs warm" in lines[0]:  # a server has ended, or is not there yet
        logs = subprocess.run([unsnarl, "warm", "logs"], env=place.environ, capture_output=True, check=False).stdout
        return logs.decode(errors="replace").strip().rpartition("\n")[2].rpartition(": ")[2] or lines[-1].strip()
    return lines[1].strip() if len(lines) > 1 else lines[0]


def differences(plain: dict[str, Any], again: dict[str, Any], warm: dict[str, Any]) -> list[str]:
    """Return where a warm run differs from both plain runs that are alike there."""
    found: list[str] = []
    if plain["status"] == again["status"] != warm["status"]:
        found.append(f"status {warm['status']}, not {plain['status']}")
    for stream in ("stdout", "stderr", "terminal"):
        if stream in plain and not is_alike(plain[stream], again[stream], warm[stream]):
            changed = difflib.unified_diff(plain[stream].splitlines(), warm[stream].splitlines(), "plain", "warm", n=0)
            found.append(f"{stream}: " + " | ".join(list(changed)[2 : 2 + SHOWN_LINES]))
    names = {name for run in (plain, again, warm) for name in run["files"]}
    for name in sorted(names):
        first, second, third = (run["files"].get(name) for run in (plain, again, warm))
        if first == second != third:
            found.append(f"file {name}: {third or 'missing'}, not {first or 'missing'}")
    return found


def is_alike(plain: str, again: str, warm: str) -> bool:
    """Return whether a text is the plain one, in all lines in which two plain runs are alike."""
    texts = [still(re.sub(r"0x[0-9a-f]{6,}", "0x…", text)).split("\n") for text in (plain, again, warm)]
    if texts[0] == texts[1]:
        return texts[2] == texts[0]
    if len({len(text) for text in texts}) != 1:
        return False
    return all(first != second or second == third for first, second, third in zip(*texts, strict=True))


def still(text: str) -> str:
    """Return a text with one frame of each spinner of ``rich``: how many are shown depends on the time."""
    frames = re.sub(r"[\u2800-\u28ff]", "…", text)
    return re.sub(r"(\x1b\[32m…\x1b\[0m [^\r\n]*)(?:\r\x1b\[2K\1)+", r"\1", frames)


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """Compare all commands of the manifest that are installed."""
    manifest = json.loads(MANIFEST.read_text())
    found: dict[str, Any] = {}
    for words in manifest["commands"]:
        label = " ".join(words)
        # A script of the project runs in the environment of this command.
        program = located(manifest["beside"].get(words[0], words[0]), arguments.bin)
        if arguments.only and words[0] not in arguments.only:
            continue
        if program is None:
            found[label] = {"missing": True}
            continue
        with tempfile.TemporaryDirectory(prefix="unsnarl-every-", ignore_cleanup_errors=True) as scratch:
            place = Place(Path(scratch), manifest["files"], os.path.dirname(program))
            found[label] = {"where": where(program, place)}
            for way in WAYS:
                try:
                    found[label][way] = one(
                        [words[0] if "/" in words[0] else program, *words[1:]], place, arguments.unsnarl, way
                    )
                except subprocess.TimeoutExpired:
                    found[label][way] = {"differences": [f"it takes more than {WATCHDOG_S} s"], "served": False}
            subprocess.run([arguments.unsnarl, "warm", "stop"], env=place.environ, check=False)
        sys.stderr.write(f"{label}: {json.dumps({way: found[label][way] for way in WAYS})}\n")
        save(found, arguments.out)
    return found


def save(found: dict[str, Any], out: str | None) -> None:
    """Add results to those of a file."""
    if out:
        before: dict[str, Any] = json.loads(Path(out).read_text()) if os.path.exists(out) else {}
        Path(out).write_text(json.dumps(before | found, indent=1) + "\n")


def located(name: str, bins: list[str]) -> str | None:
    """Return the path of a command."""
    return next((path for one in bins if os.access(path := os.path.join(one, name), os.X_OK)), None)


def where(program: str, place: Place) -> dict[str, str]:
    """Return the circumstances of a comparison."""
    place.restore()
    circumstances = machine.describe(sys.executable)
    version, commit = sys.version.split()[0], str(circumstances["commit"])
    return {"python": version, "sources": commit, "program": os.path.basename(program)}


def render(data: dict[str, Any]) -> str:
    """Return the page: differences first, then what is not served, then the table."""
    there = {label: one for label, one in data.items() if "missing" not in one}
    sources = ", ".join(sorted({one["where"]["sources"] for one in there.values()}))
    pythons = ", ".join(sorted({one["where"]["python"] for one in there.values()}))
    cases = [(label, way, one[way]) for label, one in there.items() for way in WAYS]
    differing = [case for case in cases if case[2]["differences"]]
    unserved = [case for case in cases if not case[2]["served"]]
    rows = [
        "# Every command people use, plain and warm",
        "",
        f"CPython {pythons}; sources {sources}.",
        "What is compared, and how: the head of `bench/warm/every.py`, which has written this page.",
        "A command is *served* if a worker ran it, and *plain* otherwise.",
        "",
        f"{len(there)} commands, each in pipes and on a terminal, are {len(cases)} cases:",
        f"{len(cases) - len(differing)} are the same, {len(cases) - len(unserved)} are served.",
        "",
        "## Differences",
        "",
        *listed({f"`{label}`, {way}": "; ".join(case["differences"]) for label, way, case in differing}),
        "",
        "## Not served",
        "",
        *listed({f"`{label}`, {way}": case.get("reason", "") for label, way, case in unserved}),
        "",
        "## All commands",
        "",
        "| command | status | pipes | terminal |",
        "|---|---|---|---|",
        *[row(label, one) for label, one in there.items()],
    ]
    missing = [f"`{label}`" for label, one in data.items() if "missing" in one]
    if missing:
        rows += ["", f"Not installed where this was run: {', '.join(missing)}."]
    return "\n".join(rows) + "\n"


def listed(found: dict[str, str]) -> list[str]:
    """Return the rows of a list."""
    return [f"- {name}: {escaped(text)}" for name, text in found.items()] or ["None."]


def row(label: str, one: dict[str, Any]) -> str:
    """Return the row of one command."""
    pipes, terminal = one["pipes"], one["terminal"]
    return f"| `{label}` | {pipes.get('status', '')} | {verdict(pipes)} | {verdict(terminal)} |"


def verdict(case: dict[str, Any]) -> str:
    """Return the cell of one case."""
    return ("differs" if case["differences"] else "same") + (", served" if case["served"] else ", plain")


def escaped(text: str) -> str:
    """Return a text for the inside of a page."""
    return re.sub(r"[^ -~…]", "?", text).replace("<", "&lt;").replace("|", "\\|")


def main() -> None:
    """Compare, or render the results of a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unsnarl", type=os.path.abspath, help="the native executable")
    parser.add_argument("--bin", nargs="*", type=os.path.abspath, default=[], help="directories of the commands")
    parser.add_argument("--only", nargs="*", help="commands to compare, by name")
    parser.add_argument("--out", type=os.path.abspath, help="file to write the results to; others' results in it stay")
    parser.add_argument("--render", help="file of results to show")
    arguments = parser.parse_args()
    if arguments.render:
        sys.stdout.write(render(json.loads(Path(arguments.render).read_text())))
        return
    save(measure(arguments), arguments.out)


if __name__ == "__main__":
    main()
