"""Checks which files a built sdist and wheel contain.

    python scripts/check_packages.py unsnarl-0.1.0.tar.gz unsnarl-0.1.0-cp313-….whl

Prints a line for each file that is missing or must not be there, and exits with 1 if there is one.
"""

import sys
import tarfile
import zipfile
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

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
WHEEL_MUST = [
    "unsnarl.pth",
    "unsnarl/__init__.py",
    "unsnarl/boot.py",
    "unsnarl/py.typed",
    "unsnarl/_native.pyi",
    "unsnarl/_native.*.so",
    "*.data/scripts/unsnarl",
    "*.dist-info/licenses/LICENSE-*",
]
NEVER = ["*.pyc", "*/target/*", "*/__pycache__/*", "tests/*.so"]


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


def wrong_tag(path: Path) -> list[str]:
    """Return a complaint if the wheel's tag admits other interpreters than the one that built it."""
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    if path.stem.split("-")[2].startswith(version):
        return []
    return [f"{path.name}: not tagged for the one interpreter it was built with, {version}"]


def main() -> int:
    """Print every complaint; return the exit status."""
    sdist, wheel = Path(sys.argv[1]), Path(sys.argv[2])
    found = [
        *complaints(sdist, sdist_names(sdist), SDIST_MUST),
        *complaints(wheel, wheel_names(wheel), WHEEL_MUST),
        *wrong_tag(wheel),
    ]
    for complaint in found:
        print(f"error: {complaint}")
    print(f"{sdist.name}, {wheel.name}: {len(found)} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
