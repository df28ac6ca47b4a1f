"""Checks what a built sdist and wheel carry, and that the wheel's name promises no more than its native files keep.

    python scripts/check_packages.py unsnarl-0.1.0.tar.gz unsnarl-0.1.0-cp313-….whl

Exits with 1 after one line for each thing that is missing, too much, or promised wrongly.
"""

import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from distribution import native_file
from distribution.native_file import NativeFile

SDIST_MUST = [
    "Cargo.toml",
    "Cargo.lock",
    "setup.py",
    "pyproject.toml",
    "README.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "python/unsnarl.pth",
    "python/unsnarl/py.typed",
    "crates/*/Cargo.toml",
    "crates/*/src/*.rs",
    "tests/*",
]
EXTENSION = "unsnarl/_native.*.so"
EXECUTABLE = "*.data/scripts/unsnarl"
WHEEL_MUST = [
    "unsnarl.pth",
    "unsnarl/__init__.py",
    "_unsnarl_boot.py",
    "unsnarl/py.typed",
    "unsnarl/_native.pyi",
    EXTENSION,
    EXECUTABLE,
    "*.dist-info/licenses/LICENSE-*",
]
NEVER = ["*.pyc", "*/target/*", "*/__pycache__/*", "tests/*.so", "*.debug"]

GLIBC_LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libgcc_s.so.1"}
LOADERS = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
MUSL_LIBRARIES = {"libc.so", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"}


def sdist_names(path: Path) -> list[str]:
    """Return the names of the sdist's files, without its top directory."""
    with tarfile.open(path) as archive:
        return [member.name.partition("/")[2] for member in archive if member.isfile()]


def wheel_names(path: Path) -> list[str]:
    """Return the names of the wheel's files."""
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


def complaints(path: Path, names: Iterable[str], must: Iterable[str]) -> list[str]:
    """Return a line for each pattern that no file matches, and for each file that must not be there."""
    present = list(names)
    missing = [pattern for pattern in must if not any(fnmatch(name, pattern) for name in present)]
    surplus = [name for name in present if any(fnmatch(name, pattern) for pattern in NEVER)]
    return [f"{path.name}: no {pattern}" for pattern in missing] + [f"{path.name}: has {name}" for name in surplus]


def wrong_tag(path: Path, names: Iterable[str]) -> list[str]:
    """Return a complaint if the wheel's name is not that of the one interpreter that its extension is for."""
    version = path.stem.split("-")[2].removeprefix("cp")
    extensions = [name for name in names if fnmatch(name, EXTENSION)]
    return [
        f"{path.name}: {name} is not for the interpreter of the wheel's name, {version}"
        for name in extensions
        if not re.fullmatch(rf"unsnarl/_native\.cpython-{version}t?-[\w-]+\.so", name)
    ]


def native_files(path: Path, pattern: str) -> list[NativeFile]:
    """Return what the native files of the wheel ask for."""
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as directory:
        names = [name for name in archive.namelist() if fnmatch(name, pattern)]
        return [native_file.read(Path(archive.extract(name, directory))) for name in names]


def broken_promises(path: Path) -> list[str]:
    """Return a complaint for each thing that the wheel's platform does not have and its files ask for."""
    platform = path.stem.split("-")[4].split(".")[0]
    found = []
    for extension in native_files(path, EXTENSION):
        found += extension_complaints(extension, platform)
    if not platform.startswith("linux"):  # built by pip on the machine it is for
        found += ["the executable is not static" for program in native_files(path, EXECUTABLE) if not program.is_static]
    return [f"{path.name}: {complaint}" for complaint in found]


def extension_complaints(extension: NativeFile, platform: str) -> list[str]:
    """Return what is wrong with the extension for this platform."""
    found = []
    if extension.has_debug_sections:
        found.append(f"the extension has debug information, with it {extension.size_bytes} bytes")
    if not platform.endswith(extension.machine):
        found.append(f"the extension is for {extension.machine}")
    if promised := re.match(r"manylinux_(\d+)_(\d+)_", platform):
        if extension.newest_glibc > (int(promised[1]), int(promised[2])):
            found.append(f"the extension needs glibc {'.'.join(map(str, extension.newest_glibc))}")
        found += [f"needs {name}" for name in sorted(extension.needed - GLIBC_LIBRARIES - LOADERS)]
        # The linker found no version of it in that glibc, and auditwheel sees none: the import fails there.
        found += [f"the extension needs {name}, which this glibc lacks" for name in sorted(extension.unversioned)]
        if "libgcc_s.so.1" not in extension.needed:
            found.append("the extension has an unwinder of its own, and glibc unwinds threads with libgcc_s.so.1")
    if platform.startswith("musllinux"):
        found += [f"needs {name}" for name in sorted(extension.needed - MUSL_LIBRARIES)]
    return found


def main() -> int:
    """Print every complaint; return the exit status."""
    sdist, wheel = Path(sys.argv[1]), Path(sys.argv[2])
    names = wheel_names(wheel)
    found = [
        *complaints(sdist, sdist_names(sdist), SDIST_MUST),
        *complaints(wheel, names, WHEEL_MUST),
        *wrong_tag(wheel, names),
        *broken_promises(wheel),
    ]
    for complaint in found:
        print(f"error: {complaint}", file=sys.stderr)
    print(f"{sdist.name}, {wheel.name}: {len(found)} complaints", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
