"""One line on stderr about each library whose calls wait in C, when the program imports it.

While such a call waits, no green thread runs. Often this only costs time. But if the call waits for another thread of
the program (for a row which that thread has locked, a message which it sends), it waits for ever, without a message.
These libraries are not refused: an import does not show which of their calls wait for which thread.

Invariant: a library is loaded as without unsnarl, and a module of the program by the same name causes no notice.
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
"""Modules whose calls wait in C, and the kind of wait."""


def _say(module: ModuleType) -> None:
    name = module.__name__
    reason = f"{NOTICES[name]} in native code, during which no green thread runs"
    # The import succeeds even if the line cannot be written.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.write(f"unsnarl: {name}: {reason} (hint: {HINT})\n")


def install() -> None:
    """Write a notice for each such import from now on."""
    sys.meta_path.insert(0, ChangingFinder(NOTICES, _say, is_library))
