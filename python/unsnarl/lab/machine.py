"""What a result was measured on: recorded with it, since figures mean nothing without."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ASK_PYTHON = """
import hashlib, importlib.util, json, platform, sys, sysconfig
options = sysconfig.get_config_var("CONFIG_ARGS") or ""
native = importlib.util.find_spec("unsnarl") and importlib.util.find_spec("unsnarl._native")
code = open(native.origin, "rb").read() if native else b""
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
}))
"""
"""What only the measured interpreter knows; the scheduler is known by a digest of its native code."""


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
        OSError: there is no such interpreter.
        subprocess.CalledProcessError, subprocess.TimeoutExpired, ValueError: it is none.
    """
    asked = subprocess.run([python, "-P", "-c", ASK_PYTHON], capture_output=True, text=True, check=True, timeout=60)
    told: dict[str, Any] = json.loads(asked.stdout)
    return told | {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "taken": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }


def build_of(python: dict[str, Any]) -> str:
    """Return how an interpreter was built, as far as it matters for speed."""
    words = ["shared library" if python["shared"] else "static"]
    words += [f"{'with' if python[name] else 'without'} {name.upper()}" for name in ("pgo", "lto")]
    return ", ".join(words)
