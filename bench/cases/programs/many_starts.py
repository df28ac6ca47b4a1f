"""A script that calls a Python command again and again, and each call imports its modules anew.

The scheduler does not help: there is one thread. `unsnarl warm run` before the command does, as soon as there is a
server, whose start is a figure of its own.

Reported: s3fs-fuse/s3fs-fuse, issue 1787 (200 calls of `aws`); stbenjam/skillsaw, pull request 529 (745 starts); \
canonical/operator, issue 1809
Figure: plain_ms, ms, less is better: a call as it is
Figure: warm_ms, ms, less is better, against plain_ms: a call with `unsnarl warm run`
Figure: server_ms, ms, less is better, against plain_ms: learning the command and starting its server, once
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from parts import SECONDS, report

COMMAND = """\
import argparse, asyncio, concurrent.futures, configparser, csv, email.message, http.client, json, logging.config
import sqlite3, ssl, unittest.mock, urllib.request, uuid, xml.etree.ElementTree, xmlrpc.client, zipfile
print(json.dumps({"done": True}))
"""
UNSNARL = os.path.join(sysconfig.get_path("scripts"), "unsnarl")
FEWEST_CALLS = 5


def call_ms(words: list[str], environment: dict[str, str]) -> float:
    """Return how long a call takes."""
    began = time.perf_counter()
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3


def main(folder: Path) -> None:
    """Call the command plainly and warm, one after the other, until the time is over."""
    script = folder / "command.py"
    script.write_text(COMMAND)
    # The calls are commands of their own: one that is to run under the scheduler is not served.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("UNSNARL")}
    environment = kept | {"UNSNARL_WARM_DIR": str(folder / "warm")}
    plainly = [sys.executable, str(script)]
    start, warmly = ([UNSNARL, "warm", *verb, "--", *plainly] for verb in (["start"], ["run", "--require"]))
    server_ms = call_ms(start, environment)
    try:
        end = time.perf_counter() + SECONDS
        plain: list[float] = []
        warm: list[float] = []
        while len(plain) < FEWEST_CALLS or time.perf_counter() < end:
            plain.append(call_ms(plainly, environment))
            warm.append(call_ms(warmly, environment))
    finally:
        subprocess.run([UNSNARL, "warm", "stop"], env=environment, check=False, stdout=subprocess.DEVNULL)
    report(plain_ms=statistics.median(plain), warm_ms=statistics.median(warm), server_ms=server_ms)


with tempfile.TemporaryDirectory() as name:
    main(Path(name))
