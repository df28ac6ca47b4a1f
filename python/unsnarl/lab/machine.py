"""Describes the machine and the interpreter of a measurement; the description is stored with each result."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unsnarl.lab import presence

ASK_PYTHON = """
import hashlib, importlib.metadata, importlib.util, json, os, platform, sys, sysconfig
options = sysconfig.get_config_var("CONFIG_ARGS") or ""
package = importlib.util.find_spec("unsnarl")
native = package and importlib.util.find_spec("unsnarl._native")
code = open(native.origin, "rb").read() if native else b""

def digest_of_all(folder):
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name[-4:] != ".pyc"]
    digest = hashlib.sha256()
    for path in [*sorted(files), os.path.join(os.path.dirname(sys.executable), "unsnarl")]:
        content = open(path, "rb").read() if os.path.isfile(path) else b""
        digest.update(os.path.relpath(path, folder).encode() if path in files else b"client")
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()[:16]

def version_of(name):
    try: return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError: return None

print(json.dumps({
    "python": {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "build": " ".join(platform.python_build()),
        "compiler": platform.python_compiler(),
        "pgo": "--enable-optimizations" in options,
        "lto": "--with-lto" in options,
        "shared": "--enable-shared" in options,
        "switch_interval_s": sys.getswitchinterval(),
    },
    "scheduler": hashlib.sha256(code).hexdigest()[:16] if code else None,
    "package": digest_of_all(os.path.dirname(package.origin)) if package else None,
    "versions": {name: version_of(name) for name in sys.argv[1:] if version_of(name)},
}))
"""
"""Runs in the measured interpreter. A digest of the native code identifies the scheduler; a digest of every file
of the package and of the native client identifies unsnarl."""

PACKAGES = ("unsnarl", "aiologic", "gevent", "greenlet", "pyperf", "pip", "mercurial", "black", "httpie")
"""Packages of the measured interpreter that are measured or that measure."""

PROGRAMS = {"strace": "-V", "ab": "-V", "git": "--version"}
"""Programs that measure, with the option that prints their version."""

LOAD_GENERATOR = "ab"
"""If it is missing, a program of the laboratory replaces it; results of the two differ."""

SAME = {
    "python": "python",
    "scheduler": "scheduler",
    "package": "build of unsnarl",
    "cpu": "cpu",
    "cores": "number of cores",
    "kernel": "kernel",
    "libc": "libc",
}
"""The circumstances that comparable runs share, by key and name; in addition, the versions known to both."""


def differences(machines: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return in words the circumstances that differ between these descriptions."""
    found = [words for name, words in SAME.items() if len({repr(one.get(name)) for one in machines}) > 1]
    versions: dict[str, set[str]] = {}
    for one in machines:
        for name, version in one.get("versions", {}).items():
            versions.setdefault(name, set()).add(version)
    if len({LOAD_GENERATOR in one.get("versions", {}) for one in machines}) > 1:
        found.append(f"load generator ({LOAD_GENERATOR} or ours)")
    return found + [f"version of {name}" for name, all_of_it in versions.items() if len(all_of_it) > 1]


def cpu_model() -> str:
    """Return the processor's name as the kernel gives it."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "CPU part"):
            return value.strip()
    return platform.machine()


def describe(python: str) -> dict[str, Any]:
    """Return machine, interpreter, versions and time of a measurement with ``python``.

    Raises:
        OSError: there is no such file.
        subprocess.CalledProcessError, subprocess.TimeoutExpired, ValueError: it is no interpreter.
    """
    command = [python, "-P", "-c", ASK_PYTHON, *PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    description: dict[str, Any] = json.loads(done.stdout)
    return description | {
        "versions": description["versions"] | program_versions(),
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "taken": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def program_versions() -> dict[str, str]:
    """Return the versions of the other installed programs and interpreters."""
    commands = {name: [name, option] for name, option in PROGRAMS.items() if shutil.which(name)}
    for name in presence.OTHER_INTERPRETERS:
        path = presence.other_interpreter(name)
        if path is not None:
            commands[name] = [path, "-c", "import sys; print(sys.version)"]
    first_lines = ((name, presence.first_line(command)) for name, command in commands.items())
    return {name: line for name, line in first_lines if line}


def build_of(python: dict[str, Any]) -> str:
    """Return the build options of an interpreter that affect its speed."""
    words = ["shared library" if python["shared"] else "static"]
    words += [f"{'with' if python[name] else 'without'} {name.upper()}" for name in ("pgo", "lto")]
    return ", ".join(words)
