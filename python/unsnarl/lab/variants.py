"""The variants in which programs are run, among them each feature of unsnarl alone.

A program of ``programs`` accepts ``--library`` (the module whose primitives it uses) and
``--switch-interval``; ``unsnarl run`` provides the scheduler and green threads.
"""

from __future__ import annotations

from unsnarl.demo.variant import SHORT_INTERVAL_S
from unsnarl.lab.experiment import Variant

STOCK = Variant("stock", "stock")
INTERVAL = Variant(
    "switchinterval", f"interval {SHORT_INTERVAL_S * 1e3:g} ms", words=("--switch-interval", str(SHORT_INTERVAL_S))
)
SCHEDULER = Variant("scheduler", "scheduler", launcher="run", needs=("unsnarl",))
NO_HINTS = Variant(
    "scheduler-no-hints", "scheduler, no kernel hints", "run", options=("--no-kernel-hints",), needs=("unsnarl",)
)
PRIMITIVES = Variant("primitives", "primitives", words=("--library", "unsnarl"), needs=("unsnarl",))
LOCK = Variant("lock", "lock", words=("--locks", "unsnarl"), needs=("unsnarl",))
CONDITION = Variant("condition", "condition", words=("--conditions", "unsnarl"), needs=("unsnarl",))
BOTH = Variant("both", "scheduler + primitives", "run", words=("--library", "unsnarl"), needs=("unsnarl",))
GREEN = Variant("green", "green", launcher="green", needs=("green",))
GREEN_PRIMITIVES = Variant(
    "green-primitives", "green + primitives", "green", words=("--library", "unsnarl"), needs=("green",)
)
AIOLOGIC = Variant("aiologic", "aiologic", words=("--library", "aiologic"), needs=("aiologic",))
IPC = Variant("ipc", "unsnarl.ipc", words=("--library", "unsnarl.ipc"), needs=("ipc",))
PYPY = Variant("pypy", "PyPy", interpreter="pypy", needs=("pypy",))
FREE_THREADED = Variant("free-threaded", "free-threaded", interpreter="free-threaded", needs=("free-threaded",))
PYTHON2 = Variant("python2.7", "Python 2.7", interpreter="python2.7", needs=("python2.7",))

PLAIN = Variant("plain", "plain")
WARM = Variant("warm", "warm", launcher="warm", needs=("warm",))
PACKED = Variant("packed", "packed", launcher="packed", needs=("pack",))

FEATURES = (STOCK, INTERVAL, SCHEDULER, NO_HINTS, PRIMITIVES, BOTH)
"""Each feature alone, and all of them together."""
