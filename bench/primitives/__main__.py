"""Measure every scene, the libraries in alternation, and keep the results as data.

    python -m bench.primitives --out FILE.json [--only PATTERN]... [--pairs N] [--list]

Measuring a scene again replaces its results in the file and keeps those of the others. Run it from the root of the
sources, in an environment with unsnarl and its extra `bench`.
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib.metadata
import json
import os
import statistics
import sys
import sysconfig
from pathlib import Path
from typing import Any

from bench import machine
from bench.primitives import contended, crowd, footprint, futexes, squares, uncontended
from bench.primitives.scene import OURS, PEERS, Scene
from unsnarl.interpreter import is_cpython

IS_COMPILED = not is_cpython()
"""Whether both sides are Python that a JIT compiles, as on PyPy: the goal is then to be no slower."""
KINDS = (uncontended, contended) if IS_COMPILED else (uncontended, contended, crowd, futexes, squares, footprint)
PAIRS = 5


def measure(scene: Scene, pairs: int) -> list[dict[str, float]]:
    """Return the figures of each pair; another library goes first in each pair."""
    names = list(scene.runs)
    taken: list[dict[str, float]] = []
    for number in range(pairs):
        order = names[number % len(names) :] + names[: number % len(names)]
        taken.append({name: scene.runs[name]() for name in order})
    return taken


def entry(scene: Scene, pairs: list[dict[str, float]]) -> dict[str, Any]:
    """Return the data kept for a scene."""
    return {
        "unit": scene.unit.name,
        "more_is_better": scene.unit.more_is_better,
        "goal": min(scene.goal, 1) if scene.goal and IS_COMPILED else scene.goal,
        "ceiling": scene.ceiling,
        "against": scene.against,
        "pairs": pairs,
    }


def peers() -> dict[str, str]:
    """Return the versions of the peers that are installed."""
    versions: dict[str, str] = {}
    for name in PEERS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def circumstances() -> dict[str, Any]:
    """Return the load of the machine now, and whether the interpreter has a GIL."""
    return {"load": round(os.getloadavg()[0], 1), "has_gil": not sysconfig.get_config_var("Py_GIL_DISABLED")}


def parse() -> argparse.Namespace:
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.primitives", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="the results; only printed without it")
    parser.add_argument("--only", action="append", metavar="PATTERN", help="scenes, as '*ping-pong*'; may be repeated")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--list", action="store_true", help="print the scenes' names and end")
    return parser.parse_args()


def main() -> None:
    """Measure or list the chosen scenes."""
    arguments = parse()
    patterns: list[str] = arguments.only or ["*"]
    path: Path | None = arguments.out
    data: dict[str, Any] = {"scenes": {}}
    if path is not None and path.exists():
        data = json.loads(path.read_text(encoding="utf-8"))
    data |= {"machine": machine.describe(sys.executable) | circumstances(), "peers": peers()}
    for scene in (scene for kind in KINDS for scene in kind.scenes()):
        if not any(fnmatch.fnmatch(scene.name, pattern) for pattern in patterns):
            continue
        if arguments.list:
            print(scene.name)
            continue
        pairs = measure(scene, arguments.pairs)
        data["scenes"][scene.name] = entry(scene, pairs)
        medians = {name: statistics.median(pair[name] for pair in pairs) for name in pairs[0]}
        ours = medians.pop(OURS)
        others = ", ".join(f"{name} {figure:,.3g}" for name, figure in medians.items())
        print(f"{scene.name:42} {scene.unit.name}: {OURS} {ours:,.3g}; {others}", flush=True)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
