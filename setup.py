"""Build steps that pyproject.toml cannot name: ``unsnarl.pth``, and a clean build directory.

Invariant: a wheel, an editable install and an sdist built from this tree put the
same ``unsnarl.pth`` at the root of site-packages, since ``site`` reads .pth files
nowhere else. docs/design/packaging.md says why there is one.
"""

import shutil
from pathlib import Path
from typing import ClassVar

from setuptools import Command, setup
from setuptools.command.build import build

PTH = Path("python", "unsnarl.pth")


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


Build.sub_commands = [*build.sub_commands, ("build_pth", None)]

setup(cmdclass={"build": Build, "build_pth": BuildPth})
