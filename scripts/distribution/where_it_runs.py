"""Keeps what came of trying unsnarl on each platform, and renders the page that says where it runs.

    python -m scripts.distribution.where_it_runs --record docs/results/platforms.json < LINES
    python -m scripts.distribution.where_it_runs --render docs/results/platforms.json > docs/reference/platforms.md

A line is JSON, as scripts/distribution/result_line.py prints it. Invariant: of the same platform, interpreter and way
of installation the last result stands, and only that one; nothing of the page is typed by hand but the words around
the table.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Result = dict[str, Any]

HEAD = """# Where it runs

The last result of each trial, rendered by `scripts/distribution/where_it_runs.py` from
[the results](../results/platforms.json); each row was written by a script, on the day that it names.
`scripts/bare-root` installs each wheel in a Debian root without compiler or Rust, `scripts/builds` tries other builds
of CPython, `scripts/pypy` Debian's PyPy, `scripts/matrix` the interpreters at hand. An interpreter that is not Debian's
is one of the machine's, which the root was let see. Rows on an emulated machine ran
under qemu-user; [a smoke run that fails there](../design/platforms.md#aarch64) can be the emulator's limit.
Seconds, from `pip install` to its end and to the demo's first line, were measured on two processors; the load average
is that of the minute before, also where nothing else ran.

"""
COLUMNS = {
    "Interpreter": "python",
    "Platform": "platform",
    "Installed from": "installed_from",
    "Scheduler": "probe",
    "Smoke runs": "smoke",
    "Tests": "suite",
    "Install, s": "install_s",
    "Demo, s": "demo_s",
    "Load": "load",
    "Note": "note",
    "Tried": "date",
}
OPTIONAL = {"suite", "install_s", "demo_s", "load", "note"}
"""Left out where no result has it."""


def key(result: Result) -> tuple[str, ...]:
    """Return what makes two results be about the same: interpreter without patch version, platform, kind of build."""
    python = re.sub(r"(\d+\.\d+)\.\d+", r"\1", result["python"])
    installed_from = result["installed_from"].split(" ")[0]
    return (result["machine"], result["system"], python, installed_from, result.get("note", ""))


def merged(old: Iterable[Result], new: Iterable[Result]) -> list[Result]:
    """Return the results, the newer of two about the same, in a fixed order."""
    latest = {key(result): result for result in [*old, *new]}
    return [latest[name] for name in sorted(latest)]


def cell(result: Result, field: str) -> str:
    """Return what a result says in one column, short enough for a table."""
    if field == "platform":
        return ", ".join(result[name] for name in ("system", "machine", "c_library"))
    text = str(result.get(field, "–"))
    if field == "probe":
        text = "can be installed" if text.startswith("ok") else text.removeprefix("error: ").partition(", in ")[0]
    return text.replace("|", "\\|")


def rendered(results: list[Result]) -> str:
    """Return the page."""
    columns = {
        title: field
        for title, field in COLUMNS.items()
        if field not in OPTIONAL or any(field in result for result in results)
    }
    lines = [list(columns), ["---"] * len(columns)]
    lines += [[cell(result, field) for field in columns.values()] for result in results]
    return HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def read(path: Path) -> list[Result]:
    """Return the results that are kept; none before the first."""
    if not path.exists():
        return []
    results: list[Result] = json.loads(path.read_text(encoding="utf-8"))
    return results


def main() -> None:
    """Record results from stdin, or print the page."""
    parser = argparse.ArgumentParser(prog="where_it_runs", description=(__doc__ or "").partition("\n")[0])
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument("--record", type=Path, metavar="FILE")
    group.add_argument("--render", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    if arguments.render is not None:
        sys.stdout.write(rendered(read(arguments.render)))
        return
    results = merged(read(arguments.record), [json.loads(line) for line in sys.stdin if line.strip()])
    arguments.record.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
