"""An echo thread in an interpreter whose CPU-bound work is done by sub-interpreters, each with a GIL of its own.

Its words are COUNTS NUMBER.

CPython 3.13 has them as a private module, 3.14 and later as `concurrent.interpreters`.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import parts

CODE = "import sys; sys.path.insert(0, {folder!r}); import parts; parts.compute({path!r}, {index})"


def running(code: str) -> Callable[[], object]:
    """Return a call that runs code in a sub-interpreter of its own."""
    if sys.version_info >= (3, 14):
        made = importlib.import_module("concurrent.interpreters").create()
        return lambda: made.exec(code)
    private = importlib.import_module("_interpreters")
    number = private.create()
    return lambda: private.exec(number, code)


def main(path: str, number: str) -> None:
    """Start the sub-interpreters and the thread."""
    for index in range(int(number)):
        code = CODE.format(folder=str(Path(__file__).parent), path=path, index=index)
        threading.Thread(target=running(code), daemon=True).start()
    parts.serve_in_a_thread()


if __name__ == "__main__":
    main(*sys.argv[1:])
