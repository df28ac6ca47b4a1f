"""What a result was measured on: recorded with it, since figures mean nothing without."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

ASK_PYTHON = """
import hashlib, importlib.util, json, platform, sys, sysconfig
options = sysconfig.get_config_var("CONFIG_ARGS") or ""
native = importlib.util.find_spec("unsnarl._native")
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


def first_line(*command: str) -> str:
    """Return the first line a command prints; empty when it cannot be run or fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    lines = done.stdout.splitlines()
    return lines[0] if done.returncode == 0 and lines else ""


def sources() -> str:
    """Return the commit of these sources, marked where what is measured was changed since."""
    commit = first_line("git", "rev-parse", "--short", "HEAD")
    is_changed = first_line("git", "status", "--porcelain", "--", "crates", "python", "bench")
    return f"{commit} with changes" if is_changed else commit


def describe(python: str) -> dict[str, Any]:
    """Return machine, interpreter, versions and time of a measurement with ``python``."""
    asked = subprocess.run([python, "-P", "-c", ASK_PYTHON], capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(asked.stdout)
    return told | {
        "cpu": cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "architecture": platform.machine(),
        "kernel": platform.release(),
        "libc": " ".join(platform.libc_ver()),
        "commit": sources(),
        "taken": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
    }
