"""Builds the small C libraries of the tests with the compiler of the running interpreter.

Invariant: without a compiler the test is skipped, with that reason.
"""

import shlex
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def shared_library(name: str, directory: Path) -> Path:
    """Build `name`.c into a directory; return the path of the library."""
    compiler = shlex.split(str(sysconfig.get_config_var("CC") or "cc"))
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"the interpreter's compiler, {compiler[0]}, is not installed")
    library = directory / f"{name}.so"
    options = ["-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-pthread"]
    source = HERE / f"{name}.c"
    subprocess.run([*compiler, *options, "-o", str(library), str(source), "-ldl"], check=True)
    return library
