r"""Assembles one wheel from the Python files, the metadata and two native files; the same input gives the same bytes.

    python -m scripts.distribution.wheel_file --files DIR --dist-info DIR --native FILE --client FILE \
        --python 3.13 --platform manylinux_2_17_x86_64 --out DIR

setuptools makes the files and the metadata; it names a wheel for the interpreter and the machine that it runs on, so
it cannot make one for others. This script never compiles, and never looks at the machine it runs on.

Invariant: members are sorted, and carry the date of ``SOURCE_DATE_EPOCH`` (seconds, default: 1980) and a mode that
depends on their kind alone; RECORD lists every member with its SHA-256.
"""

import argparse
import base64
import hashlib
import os
import re
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FILE_MODE = 0o100644
EXECUTABLE_MODE = 0o100755
EARLIEST_EPOCH_S = 315532800
"""Seconds; 1980-01-01, before which a zip file has no dates."""

LEGACY_ALIASES = {"manylinux_2_17": "manylinux2014"}
"""What pip called a platform before PEP 600; pip 20.2 and older know only this name."""

C_LIBRARIES = {"manylinux": "gnu", "musllinux": "musl"}


@dataclass(frozen=True)
class Target:
    """The interpreter and the platform that a wheel is for."""

    python: str
    platform: str

    @property
    def interpreter_tag(self) -> str:
        """The interpreter in a wheel's name: cp313, or cp314t without a GIL."""
        return "cp" + self.python.replace(".", "")

    @property
    def platform_tags(self) -> list[str]:
        """The platform in a wheel's name, the newest name first."""
        family, architecture = self._split()
        alias = LEGACY_ALIASES.get(family)
        return [self.platform] + ([f"{alias}_{architecture}"] if alias else [])

    @property
    def extension_suffix(self) -> str:
        """What the interpreter's ``sysconfig`` calls EXT_SUFFIX."""
        family, architecture = self._split()
        library = C_LIBRARIES[family.partition("_")[0]]
        return f".cpython-{self.python.replace('.', '')}-{architecture}-linux-{library}.so"

    @property
    def tag(self) -> str:
        """The three compressed tags of a wheel's name."""
        version = self.interpreter_tag
        return f"{version.rstrip('t')}-{version}-{'.'.join(self.platform_tags)}"

    def _split(self) -> tuple[str, str]:
        matched = re.fullmatch(r"((?:many|musl)linux_\d+_\d+)_(\w+)", self.platform)
        if matched is None:
            raise SystemExit(f"error: no such platform: {self.platform}\nhint: for example musllinux_1_2_x86_64")
        return matched[1], matched[2]


@dataclass(frozen=True)
class Member:
    """One file of a wheel."""

    name: str
    content: bytes
    mode: int = FILE_MODE


def tree(directory: Path, prefix: str = "") -> Iterator[Member]:
    """Yield the files below a directory."""
    for path in directory.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts:
            yield Member(prefix + path.relative_to(directory).as_posix(), path.read_bytes())


def wheel_metadata(target: Target) -> bytes:
    """Return what the file WHEEL says."""
    version = target.interpreter_tag
    lines = ["Wheel-Version: 1.0", "Generator: unsnarl scripts/wheels", "Root-Is-Purelib: false"]
    lines += [f"Tag: {version.rstrip('t')}-{version}-{platform}" for platform in target.platform_tags]
    return "".join(f"{line}\n" for line in lines).encode()


def record(members: list[Member], name: str) -> bytes:
    """Return the file RECORD: every member with its digest and size, itself without."""
    lines = []
    for member in members:
        digest = base64.urlsafe_b64encode(hashlib.sha256(member.content).digest()).rstrip(b"=").decode()
        lines.append(f"{member.name},sha256={digest},{len(member.content)}")
    return "".join(f"{line}\n" for line in [*lines, f"{name},,"]).encode()


def all_members(files: Path, dist_info: Path, native: Path, client: Path, target: Target) -> list[Member]:
    """Return what the wheel carries, sorted, RECORD last as PEP 427 recommends."""
    stem = dist_info.name
    package = stem.partition("-")[0]
    members = [
        *tree(files),
        *(member for member in tree(dist_info, f"{stem}/") if Path(member.name).name not in {"RECORD", "WHEEL"}),
        Member(f"{package}/_native{target.extension_suffix}", native.read_bytes(), EXECUTABLE_MODE),
        Member(f"{stem.removesuffix('.dist-info')}.data/scripts/{package}", client.read_bytes(), EXECUTABLE_MODE),
        Member(f"{stem}/WHEEL", wheel_metadata(target)),
    ]
    members.sort(key=lambda member: (member.name.startswith(stem), member.name))
    return [*members, Member(f"{stem}/RECORD", record(members, f"{stem}/RECORD"))]


def write(path: Path, members: list[Member], epoch_s: int) -> None:
    """Write the wheel."""
    year, month, day, hour, minute, second, *_ = time.gmtime(max(epoch_s, EARLIEST_EPOCH_S))
    with zipfile.ZipFile(path, "w") as archive:
        for member in members:
            entry = zipfile.ZipInfo(member.name, (year, month, day, hour, minute, second))
            entry.external_attr = member.mode << 16
            entry.create_system = 3  # Unix, whose modes these are
            archive.writestr(entry, member.content, zipfile.ZIP_DEFLATED, compresslevel=9)


def main() -> None:
    """Write the wheel and print its path."""
    parser = argparse.ArgumentParser(prog="wheel_file", description=(__doc__ or "").partition("\n")[0])
    for name in ("files", "dist-info", "native", "client", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    for name in ("python", "platform"):
        parser.add_argument(f"--{name}", required=True)
    arguments = parser.parse_args()
    target = Target(arguments.python, arguments.platform)
    members = all_members(arguments.files, arguments.dist_info, arguments.native, arguments.client, target)
    path = arguments.out / f"{arguments.dist_info.name.removesuffix('.dist-info')}-{target.tag}.whl"
    write(path, members, int(os.environ.get("SOURCE_DATE_EPOCH", EARLIEST_EPOCH_S)))
    print(path)


if __name__ == "__main__":
    main()
