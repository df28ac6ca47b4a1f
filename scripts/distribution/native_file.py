"""Reads from a native file what decides where it can run, with binutils' ``readelf``, which knows every architecture.

Invariant: what readelf does not print is not guessed; a file that it cannot read raises.
"""

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}


@dataclass(frozen=True)
class NativeFile:
    """What one ELF file asks of the machine it runs on."""

    machine: str
    """As in the name of a platform: x86_64, aarch64."""
    needed: frozenset[str]
    """Libraries that the loader has to find."""
    newest_glibc: tuple[int, int]
    """The newest version of glibc that one of its symbols needs; (0, 0) without."""
    unversioned: frozenset[str]
    """Names that it must find in some library, of which it does not say a version, except the interpreter's own."""
    is_static: bool
    """Whether the kernel starts it without a loader."""
    has_debug_sections: bool
    size_bytes: int


def read(path: Path) -> NativeFile:
    """Return what the file asks for."""
    headers = ["--file-header", "--program-headers", "--section-headers"]
    tables = ["--dynamic", "--dyn-syms", "--version-info"]
    command = ["readelf", "--wide", *headers, *tables, str(path)]
    environment = {**os.environ, "LC_ALL": "C"}
    result = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return parse(result.stdout, path.stat().st_size)


def parse(text: str, size_bytes: int) -> NativeFile:
    """Return what readelf's output says."""
    machine = re.search(r"^ *Machine: +(.+?)$", text, re.MULTILINE)
    if machine is None:
        raise ValueError("not an ELF file")
    needed = frozenset(re.findall(r"\(NEEDED\) .*\[(.+)\]", text))
    versions = [(int(major), int(minor)) for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text)]
    unversioned = re.findall(r" GLOBAL +DEFAULT +UND (?!_?Py)([^@\s]+)$", text, re.MULTILINE)
    return NativeFile(
        machine=MACHINES.get(machine[1], machine[1]),
        needed=needed,
        newest_glibc=max(versions, default=(0, 0)),
        unversioned=frozenset(unversioned),
        is_static=not needed and not re.search(r"^ +INTERP ", text, re.MULTILINE),
        has_debug_sections=re.search(r"\] \.z?debug_(info|line) ", text) is not None,
        size_bytes=size_bytes,
    )
