"""What ``setup.py`` says, in one line, to a machine that cannot build."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("setuptools_rust", reason="setup.py needs the build requirements installed")

PROJECT = Path(__file__).parents[2]
COMPILER = 'case "$1" in -print-file-name=libc.a) echo libc.a;; -print-file-name=*) echo "/lib/${1#*=}";; esac'
RUSTC = "echo rustc 1.88.0"


def impersonate(name: str) -> str:
    """Return a line that makes CPython another implementation, as far as `setup.py` can see."""
    return f"sys.implementation.name = {name.lower()!r}; platform.python_implementation = lambda: {name!r}"


def check(directory: Path, programs: dict[str, str], first: str = "pass") -> subprocess.CompletedProcess[str]:
    """Run the check with these programs on PATH and no other; `first` is run by its interpreter before."""
    for name, body in programs.items():
        program = directory / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in {"RUSTC", "CARGO", "RUSTFLAGS"}}
    kept = {name: value for name, value in kept.items() if not name.endswith("_LINKER")}
    script = f"import platform, runpy, sys; {first}; runpy.run_path('setup.py', run_name='__main__')"
    command = [sys.executable, "-W", "ignore", "-c", script, "--quiet", "check_tools"]
    environment = {**kept, "PATH": str(directory)}
    return subprocess.run(
        command, check=False, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(
    ("programs", "said"),
    [
        pytest.param({}, "there is no cargo on PATH", id="no-rust"),
        pytest.param({"cargo": ""}, "`rustc --version` fails", id="broken-rust"),
        pytest.param({"cargo": "", "rustc": "echo rustc 1.63.0"}, "is rustc 1.63.0", id="old-rust"),
        pytest.param({"cargo": "", "rustc": RUSTC}, "there is no cc on PATH", id="no-linker"),
        pytest.param({"cargo": "", "rustc": RUSTC, "cc": "echo crt1.o"}, "finds no crt1.o", id="no-c-library"),
    ],
)
def test_a_lack_is_named_in_one_line(tmp_path: Path, programs: dict[str, str], said: str) -> None:
    result = check(tmp_path, programs)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: building unsnarl needs ")
    assert said in line
    assert ": install it" in line


OFFLINE = """cat >&2 <<'SAID'
warning: spurious network error (1 try remaining): [6] Could not resolve hostname
error: failed to get `libc` as a dependency of package `unsnarl-shm v0.1.0`

Caused by:
  failed to download from `https://index.crates.io/config.json`

Caused by:
  [6] Could not resolve hostname
SAID
exit 101"""
WITHOUT_CAUSE = (
    "echo 'error: no matching package named `loom` found' >&2; echo 'required by package `sync`' >&2; exit 101"
)


@pytest.mark.parametrize(
    ("cargo", "cause"),
    [
        pytest.param(OFFLINE, "[6] Could not resolve hostname", id="no-network"),
        pytest.param(WITHOUT_CAUSE, "no matching package named `loom` found", id="told-to-stay-offline"),
        pytest.param("exit 101", "exit status 101", id="without-a-word"),
    ],
)
def test_crates_that_cannot_be_fetched_are_told_in_one_line(tmp_path: Path, cargo: str, cause: str) -> None:
    programs = {"cargo": f"PATH=/usr/bin:/bin\n{cargo}", "rustc": RUSTC, "cc": COMPILER}
    result = check(tmp_path, programs)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line == (
        f"error: building unsnarl needs its Rust crates, and `cargo fetch` fails ({cause}): "
        "connect to the network, or install a wheel, which needs none"
    )


def test_no_static_c_library_is_needed(tmp_path: Path) -> None:
    result = check(tmp_path, {"cargo": "", "rustc": RUSTC, "cc": COMPILER})
    assert (result.returncode, result.stderr) == (0, "")


def test_pypy_needs_no_tool(tmp_path: Path) -> None:
    result = check(tmp_path, {}, impersonate("PyPy"))
    assert (result.returncode, result.stderr) == (0, "")


def test_another_implementation_is_refused_in_one_line(tmp_path: Path) -> None:
    result = check(tmp_path, {"cargo": "", "rustc": RUSTC, "cc": COMPILER}, impersonate("GraalPy"))
    assert result.returncode == 1
    assert result.stderr.splitlines() == ["error: unsnarl runs on CPython and PyPy, and this is GraalPy"]
