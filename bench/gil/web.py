"""A threaded web server next to k CPU-bound threads: the demonstration's servers, one window.

The load generator is wrk if it is installed (it is compiled, and needs less of a small machine), else the
demonstration's own. This process only starts both; the variant is applied in the server process.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from bench import run
from unsnarl.demo.child import Child
from unsnarl.demo.hogs import jain, rates
from unsnarl.demo.measurement import COMMANDS, STDLIB, TIMEOUT_S, Served, load_once

WRK_REPORT = """
done = function(summary, latency, requests)
  local errors = summary.errors
  print(string.format(
    '{"requests": %d, "duration_us": %d, "p50_us": %.1f, "p99_us": %.1f, "max_us": %.1f, "errors": %d}',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), latency.max,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
"""


def run_wrk(port: int, connections: int, seconds: int) -> dict[str, Any]:
    """Load ``port`` with wrk for whole seconds; return the report of its Lua hook."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "report.lua"
        script.write_text(WRK_REPORT)
        command = [
            *("wrk", "-t", "1", "-c", str(connections), "-d", f"{seconds}s"),
            *("-s", str(script), f"http://127.0.0.1:{port}/hello"),
        ]
        with Child("wrk", command, os.environ) as wrk:
            while not (line := wrk.receive(seconds + TIMEOUT_S)).startswith("{"):
                pass
    report: dict[str, Any] = json.loads(line)
    return report


def load_with_wrk(served: Served, connections: int, seconds: int) -> tuple[dict[str, Any], list[float]]:
    """Load a server with wrk for one window, after a second of warm-up."""
    run_wrk(served.port, connections, 1)
    begin = served.read()
    report = run_wrk(served.port, connections, seconds)
    end = served.read()
    figures = {name: report[name] for name in ("p50_us", "p99_us", "max_us", "errors")}
    figures["requests_per_s"] = report["requests"] / report["duration_us"] * 1e6
    return figures, rates(begin, end)


def main() -> None:
    """Measure one window and print it."""
    parser = run.parser(__doc__ or "")
    parser.add_argument("--server", choices=tuple(COMMANDS), default=STDLIB)
    parser.add_argument("--load", choices=("wrk", "own"), default="wrk" if shutil.which("wrk") else "own")
    parser.add_argument("-c", "--connections", type=int, default=10)
    parser.add_argument("-k", "--hogs", type=int, default=4, metavar="K", help="CPU-bound threads")
    parser.add_argument("--seconds", type=int, default=2)
    arguments = parser.parse_args()
    with Served(arguments.server, arguments.variant, arguments.hogs, arguments.options) as served:
        figures: dict[str, Any]
        if arguments.load == "wrk":
            figures, work = load_with_wrk(served, arguments.connections, arguments.seconds)
        else:
            figures, work = load_once(served, arguments.connections, arguments.seconds, 0.5)
    figures |= {"work_per_s": sum(work), "work_each_per_s": work, "jain": jain(work)}
    names = ("server", "load", "connections", "hogs")
    parameters = {name: getattr(arguments, name) for name in names}
    run.print_line("web", arguments, parameters, figures)


if __name__ == "__main__":
    main()
