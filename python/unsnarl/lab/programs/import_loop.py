"""Imports an already imported module in a loop, in a program without threads.

    python import_loop.py COUNT

Runs under Python 2.7 as well. Prints seconds.
"""

import json
import sys
import time

clock = getattr(time, "perf_counter", time.time)
count = int(sys.argv[1])

began_s = clock()
for _ in range(count):
    import os  # noqa: F401 # pyright: ignore[reportUnusedImport] -- the import itself is measured
elapsed_s = clock() - began_s

print(json.dumps({"elapsed_s": elapsed_s, "per_import_ns": elapsed_s / count * 1e9}))
