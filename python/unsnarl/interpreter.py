"""Whether this interpreter is CPython, and in words why anything but the primitives needs it.

Must never: import a module; it is asked where a program starts.
"""

import sys

REASONS = {
    "run": "nothing can be scheduled: the scheduler replaces calls of CPython's GIL",
    "enable": "nothing can be scheduled: the scheduler replaces calls of CPython's GIL",
    "disable": "nothing can be enabled there",
    "status": "nothing can be enabled there",
    "demo": "nothing can be scheduled: the scheduler replaces calls of CPython's GIL",
    "lab": "its experiments start from CPython",
    "trace": "nothing can be recorded: the recorder replaces calls of CPython's GIL",
    "doctor": "it can neither record a program nor start one faster there",
    "ipc": "primitives between processes need the native extension",
    "cluster": "primitives between machines need a native extension",
    "warm": "servers of warm commands need CPython's native extension and its way to fork",
    "pack": "packs hold code of CPython",
    "gil": "nothing can be scheduled: the scheduler replaces calls of CPython's GIL",
}
"""By verb of the command, why it cannot work on another interpreter."""

NO_PATCH = "its own classes cannot be replaced; make those of unsnarl by name"

HINT = "its primitives for threads and tasks work here; use CPython for the rest"


def is_cpython() -> bool:
    """Return whether the interpreter is CPython, the only one with the native extension."""
    return sys.implementation.name == "cpython"


def description() -> str:
    """Return the implementation's name and its language version, such as ``PyPy 3.11``."""
    name = {"pypy": "PyPy"}.get(sys.implementation.name, sys.implementation.name)
    return f"{name} {sys.version_info[0]}.{sys.version_info[1]}"


def reason_of(name: str) -> str:
    """Return why a name of the native extension is not there."""
    return REASONS["ipc" if name.lower().startswith("ipc") else "trace" if "trace" in name else "gil"]
