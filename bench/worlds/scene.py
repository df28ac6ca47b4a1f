"""Plays one scene with one library: ``python -m bench.worlds.scene NAME LIBRARY``.

The scenes are those of `bench.primitives` that have a rate or a time, and those of `hand_overs`. An operation is what
the scene counts.
"""

from __future__ import annotations

import json
import sys
from functools import partial

import unsnarl
from bench.primitives import contended, uncontended
from bench.primitives.scene import NANOSECONDS, OURS, RATE, STANDARD, Scene
from bench.worlds.hand_overs import HAND_OVERS, standard

KINDS = (uncontended, contended)


def scenes() -> dict[str, Scene]:
    """Return the scenes that both libraries play, by name."""
    libraries = {STANDARD: standard(), OURS: unsnarl}
    every = [scene for kind in KINDS for scene in kind.scenes()] + [
        Scene(name, RATE, {library: partial(play, of) for library, of in libraries.items()})
        for name, play in HAND_OVERS.items()
    ]
    return {
        scene.name: scene
        for scene in every
        if scene.unit in (RATE, NANOSECONDS) and {STANDARD, OURS} <= scene.runs.keys()
    }


def main() -> None:
    """Play and print."""
    scene = scenes()[sys.argv[1]]
    figure = scene.runs[sys.argv[2]]()
    rate = figure if scene.unit.more_is_better else 1e9 / figure
    print(json.dumps({"operations": rate, "elapsed_s": 1.0}))


if __name__ == "__main__":
    main()
