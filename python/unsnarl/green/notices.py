"""One line on stderr about each library whose calls wait in C, when the program imports it.

While such a call waits, no green thread runs. Often that is slow and nothing else; but if what it waits for is up to
another thread of the program (a row that one has locked, a message that one sends), it waits for ever, without a
sign. These libraries are not refused: which of their calls wait for whom cannot be told from an import.

Invariant: a library is loaded as it would be without us, and what is the program's own is not meant.
"""

from __future__ import annotations

import contextlib
import sys
from types import ModuleType

from unsnarl.green.refusals import HINT, is_library
from unsnarl.others import ChangingFinder

_QUERIES = "a query, and a lock in the database, is waited for"
NOTICES = {
    "psycopg2": _QUERIES,
    "MySQLdb": _QUERIES,
    "pyodbc": _QUERIES,
    "zmq": "a message is waited for (not so with zmq.green)",
}
"""Modules whose calls wait in C, and for what."""


def _say(module: ModuleType) -> None:
    name = module.__name__
    reason = f"{NOTICES[name]} in native code, during which no green thread runs"
    # The program's import goes on, whoever hears of it.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"unsnarl: {name}: {reason} (hint: {HINT})\n")


def install() -> None:
    """Speak of them from now on."""
    sys.meta_path.insert(0, ChangingFinder(NOTICES, _say, is_library))
