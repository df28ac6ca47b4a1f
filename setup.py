"""Build steps that pyproject.toml cannot name: a check of the tools, ``unsnarl.pth``, and a clean build directory.

Invariants: a wheel, an editable install and an sdist built from this tree put the
same ``unsnarl.pth`` at the root of site-packages, since ``site`` reads .pth files
nowhere else; a machine that cannot build is told in one line what it lacks, before
anything is compiled. docs/design/packaging.md has the reasons.
"""

import os
import platform
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, ClassVar

from setuptools import Command, Distribution, setup
from setuptools.command.build import build
from setuptools_rust import RustBin

PTH = Path("python", "unsnarl.pth")

GET_RUST = "install it with rustup (https://rustup.rs); distributions often have an older one"
GET_CRATES = "connect to the network, or install a wheel, which needs none"
GET_LINKER = "install it: `apt-get install gcc libc6-dev`, `dnf install gcc glibc-devel`, or `apk add gcc musl-dev`"

IS_NATIVE = sys.implementation.name != "pypy"
"""Whether the extension and the native command are built: PyPy gets the primitives in pure Python."""

STATIC = ["--config", "build.rustflags=['-Ctarget-feature=+crt-static']"]
"""What cargo takes to link the executable statically; cargo adds the flags to those of pyproject.toml."""


def output(*command: str) -> str:
    """Return what a program prints; nothing if it is missing or fails."""
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def wanted_rust() -> str:
    """Return the oldest Rust that the workspace can be built with."""
    with open("Cargo.toml", "rb") as file:
        return str(tomllib.load(file)["workspace"]["package"]["rust-version"])


def rust_lack() -> str | None:
    """Say what is wrong with the Rust of this machine."""
    wanted = wanted_rust()
    if shutil.which(os.environ.get("CARGO", "cargo")) is None:
        return f"building unsnarl needs Rust {wanted} or newer, and there is no cargo on PATH: {GET_RUST}"
    rustc = os.environ.get("RUSTC", "rustc")
    found = re.match(r"rustc (\d+)\.(\d+)\S*", output(rustc, "--version"))
    if found is None:
        return f"building unsnarl needs Rust {wanted} or newer, and `{rustc} --version` fails: {GET_RUST}"
    if (int(found[1]), int(found[2])) < tuple(map(int, wanted.split("."))):
        return f"building unsnarl needs Rust {wanted} or newer, and {shutil.which(rustc)} is {found[0]}: {GET_RUST}"
    return None


def interpreter_lack() -> str | None:
    """Say that this is neither CPython, for which the extension is, nor PyPy, on which the primitives were tried."""
    if sys.implementation.name in ("cpython", "pypy"):
        return None
    return f"unsnarl runs on CPython and PyPy, and this is {platform.python_implementation()}"


def has_link_file(name: str) -> bool:
    """Tell whether the C compiler's linker finds a file of the C library."""
    return "/" in output("cc", f"-print-file-name={name}").strip()


def linker_lack() -> str | None:
    """Say what the linker lacks; nothing where cargo is set up to use another one."""
    if "linker" in os.environ.get("RUSTFLAGS", "") or any(name.endswith("_LINKER") for name in os.environ):
        return None
    if shutil.which("cc") is None:
        return f"building unsnarl needs a C linker, and there is no cc on PATH: {GET_LINKER}"
    if not has_link_file("crt1.o"):
        return f"building unsnarl needs the C library's development files, and cc finds no crt1.o: {GET_LINKER}"
    return None


def crates_lack() -> str | None:
    """Fetch the crates that the build compiles; say why where they cannot be had."""
    host = re.search(r"^host: (\S+)", output(os.environ.get("RUSTC", "rustc"), "-vV"), re.MULTILINE)
    target = os.environ.get("CARGO_BUILD_TARGET") or (host[1] if host else "")
    command = [os.environ.get("CARGO", "cargo"), "fetch", *(["--target", target] if target else [])]
    fetched = subprocess.run(command, check=False, capture_output=True, text=True)
    if fetched.returncode == 0:
        return None
    said = [line.strip() for line in fetched.stderr.splitlines() if line.strip()]
    errors = [line.removeprefix("error: ") for line in said if line.startswith("error: ")]
    cause = said[-1] if "Caused by:" in said else next(iter(errors), f"exit status {fetched.returncode}")
    return f"building unsnarl needs its Rust crates, and `cargo fetch` fails ({cause}): {GET_CRATES}"


class CheckTools(Command):
    """Refuse to build, in one line, where a tool is missing; choose how the executable is linked."""

    description = "check that Rust, a linker and the crates are there"
    user_options: ClassVar[list[tuple[str, str, str]]] = []

    editable_mode: bool = False

    def initialize_options(self) -> None:
        """Take no option."""

    def finalize_options(self) -> None:
        """Take no option."""

    def run(self) -> None:
        """Exit with one line, or link the executable statically where the C library can be."""
        if sys.platform != "linux":
            raise SystemExit(f"error: unsnarl runs on Linux, and this is {sys.platform}")
        lack = interpreter_lack()
        if lack is None and IS_NATIVE:
            lack = rust_lack() or linker_lack() or crates_lack()
        if lack is not None:
            raise SystemExit(f"error: {lack}")
        if has_link_file("libc.a"):
            for extension in getattr(self.distribution, "rust_extensions", []):
                if isinstance(extension, RustBin):
                    extension.args = (*(extension.args or ()), *STATIC)

    def get_source_files(self) -> list[str]:
        """Name what an sdist must carry for this step."""
        return []

    def get_outputs(self) -> list[str]:
        """Write nothing."""
        return []

    def get_output_mapping(self) -> dict[str, str]:
        """Write nothing."""
        return {}


class Build(build):
    """Build into an empty directory: setuptools would pack what an earlier build left there."""

    def run(self) -> None:
        """Remove the build directory, then build."""
        shutil.rmtree(self.build_lib, ignore_errors=True)
        super().run()


class BuildPth(Command):
    """Copy ``unsnarl.pth`` to the root of what becomes site-packages.

    The attributes and methods are setuptools' SubCommand protocol.
    """

    description = "copy unsnarl.pth to the root of the build"
    user_options: ClassVar[list[tuple[str, str, str]]] = [("build-lib=", "d", "directory to build into")]

    editable_mode: bool = False
    build_lib: str

    def initialize_options(self) -> None:
        """Take no option of its own."""
        self.build_lib = ""

    def finalize_options(self) -> None:
        """Build where the modules are built, or, if editable, into the wheel itself.

        An editable wheel leaves build_lib out, and takes what is installed into it.
        """
        build_command = self.get_finalized_command("build")
        self.build_lib = self.build_lib or str(build_command.build_lib)

    def run(self) -> None:
        """Copy the file."""
        target = str(self.get_finalized_command("install").install_lib) if self.editable_mode else self.build_lib
        self.mkpath(target)
        self.copy_file(str(PTH), str(Path(target, PTH.name)))

    def get_source_files(self) -> list[str]:
        """Name what an sdist must carry for this step."""
        return [str(PTH)]

    def get_outputs(self) -> list[str]:
        """Name what this step writes."""
        return [str(Path(self.build_lib, PTH.name))]

    def get_output_mapping(self) -> dict[str, str]:
        """Offer nothing to link to: the copy is made in editable installs too."""
        return {}


class PureDistribution(Distribution):
    """What is installed on PyPy: no extension, and a command in Python. docs/design/platforms.md has the reasons."""

    def finalize_options(self) -> None:
        """Drop the extensions that pyproject.toml names."""
        super().finalize_options()
        self.rust_extensions: list[object] = []

    def parse_config_files(self, *arguments: Any, **options: Any) -> None:
        """Read the settings, of which the command in Python is none: elsewhere it is native."""
        super().parse_config_files(*arguments, **options)
        self.entry_points = {"console_scripts": ["unsnarl = unsnarl.cli:main"]}

    def has_ext_modules(self) -> bool:
        """Return that there is none."""
        return False


Build.sub_commands = [("check_tools", None), *build.sub_commands]
if IS_NATIVE:
    Build.sub_commands.append(("build_pth", None))

commands = {"build": Build, "build_pth": BuildPth, "check_tools": CheckTools}
if IS_NATIVE:
    setup(cmdclass=commands)
else:
    # Not py3-none-any: pip keeps the wheels that it builds, and would install this one on CPython too.
    tag = f"pp{sys.version_info[0]}{sys.version_info[1]}"
    setup(cmdclass=commands, distclass=PureDistribution, options={"bdist_wheel": {"python_tag": tag}})
