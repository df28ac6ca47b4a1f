"""A path that imports have examined is unchanged, or no request is served with the result."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

WARM = "print(mod.VALUE, '_unsnarl_warm' in sys.modules)\n"


def script_of(rig: Rig, module: str) -> str:
    """Write a command whose module has a ``VALUE``."""
    (rig.directory / "bin" / "mod.py").write_text(module)
    return rig.script("who", "import sys, mod\n" + WARM)


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("text")


# A query about a directory, and the file that appears there.
LOOKS = {
    "a file": ("os.path.exists({place!r} + '/rc')", "rc"),
    "a file beneath what is not there": ("os.path.isfile({place!r} + '/conf.d/rc')", "conf.d/rc"),
    "names": ("sorted(os.listdir({place!r}))", "new.yaml"),
    "names by pathlib": ("sorted(p.name for p in pathlib.Path({place!r}).iterdir())", "new.yaml"),
    "names of what is not there": ("os.path.isdir({place!r} + '/data') and os.listdir({place!r} + '/data')", "data/x"),
    "whether it may be read": ("os.access({place!r} + '/rc', os.R_OK)", "rc"),
    "a file that is opened": ("os.path.getsize({place!r} + '/there')", "there"),
}


@pytest.mark.parametrize("name", LOOKS)
def test_a_file_that_comes_is_seen_by_the_next_request(rig: Rig, name: str) -> None:
    place = rig.directory / "place"
    place.mkdir()
    (place / "there").write_text("")
    look, new = LOOKS[name]
    script = script_of(rig, f"import os, pathlib\nVALUE = {look.format(place=str(place))}\n")
    rig.start(script)
    before = rig.served(script).stdout
    assert before.endswith(b" True\n")
    assert rig.served(script).stdout == before
    write(place / new)
    plain = rig.plain(script).stdout
    assert rig.warm(script).stdout == plain != before.replace(b" True\n", b" False\n")
    rig.start(script)
    assert rig.served(script).stdout == plain.replace(b" False\n", b" True\n")


@pytest.mark.parametrize(("below", "look"), [
    ("", "os.path.realpath({link!r})"),
    ("", "os.readlink({link!r})"),
    ("", "os.path.realpath({link!r} + '/rc')"),
    ("/rc", "str(pathlib.Path({link!r}).resolve())"),
])  # fmt: skip
def test_a_link_that_leads_elsewhere_is_seen_by_the_next_request(rig: Rig, below: str, look: str) -> None:
    link, new = rig.directory / "place" / "current", rig.directory / "place" / "new"
    for number in (1, 2):
        write(rig.directory / "place" / f"release-{number}" / "rc")
    link.symlink_to(f"release-1{below}")
    script = script_of(rig, f"import os, pathlib\nVALUE = {look.format(link=str(link))}\n")
    rig.start(script)
    assert b"release-1" in rig.served(script).stdout
    new.symlink_to(f"release-2{below}")
    new.rename(link)
    assert b"release-2" in rig.plain(script).stdout
    assert rig.warm(script).stdout == rig.plain(script).stdout


@pytest.mark.parametrize("look", [
    "int(os.path.exists(PLACE + '/rc'))",
    "int(os.path.getsize(PLACE + '/conf') > 1)",
    "int(open(PLACE + '/conf').read() != '')",
    "len(os.listdir(PLACE))",
    "len(list(os.scandir(PLACE)))",
])  # fmt: skip
@pytest.mark.parametrize("place", ["os.path.dirname(__file__) + '/link/../place'", "'link/../place'"])
def test_what_lies_above_the_target_of_a_link_is_looked_for_there(rig: Rig, look: str, place: str) -> None:
    for number in (1, 2):
        (rig.directory / f"{number}" / "release").mkdir(parents=True)
        (rig.directory / f"{number}" / "place").mkdir()
    (rig.directory / "place").mkdir()  # where `..` leads if the link is taken for a directory
    for number, text in ((1, ""), (2, "text")):
        (rig.directory / f"{number}" / "place" / "conf").write_text(text)
    (rig.directory / "2" / "place" / "rc").touch()
    link, new = rig.directory / "bin" / "link", rig.directory / "new"
    link.symlink_to(rig.directory / "1" / "release")
    script, here = script_of(rig, f"import os\nPLACE = {place}\nVALUE = {look}\n"), rig.directory / "bin"
    rig.start(script, cwd=here)
    before = rig.plain(script, cwd=here).stdout
    assert rig.served(script, cwd=here).stdout == before.replace(b"False", b"True")
    new.symlink_to(rig.directory / "2" / "release")
    new.rename(link)
    assert rig.warm(script, cwd=here).stdout == rig.plain(script, cwd=here).stdout != before


def test_what_else_comes_and_goes_beside_it_is_nothing(rig: Rig) -> None:
    place = rig.directory / "place"
    place.mkdir()
    script = script_of(rig, f"import os\nVALUE = os.path.exists({str(place / 'rc')!r})\n")
    rig.start(script)
    for number in range(3):
        write(place / f"other-{number}")
        assert rig.served(script).stdout == b"False True\n"


@pytest.mark.parametrize(
    "name", ["results_1/notes", "other.py", "other.so", "other.zip", "other-1.0.dist-info/METADATA"]
)
def test_what_no_import_has_searched_for_ends_no_server(rig: Rig, name: str) -> None:
    script = script_of(rig, "import json\nVALUE = 1\n")
    rig.start(script)
    pids = rig.server_pids()
    write(rig.directory / "bin" / name)
    assert rig.served(script).stdout == b"1 True\n"
    assert rig.server_pids() == pids


# What an import does to find what is not there, and the file that comes.
IMPORT = "try: from optional import VALUE\nexcept ImportError: VALUE = 0\n"
BY_NAME = "import importlib\ntry: VALUE = importlib.import_module('optional').VALUE\nexcept ImportError: VALUE = 0\n"
LOOK = "from importlib.util import find_spec\nVALUE = int(find_spec('optional') is not None)\n"
MODULES = """import pkgutil, os
VALUE = int('optional' in [one.name for one in pkgutil.iter_modules([os.path.dirname(__file__)])])
"""
INSTALLED = """from importlib import metadata
VALUE = len([one for one in metadata.distributions() if one.metadata['Name'] == 'optional'])
"""
VERSION = """from importlib import metadata
try: VALUE = int(metadata.version('optional')[0])
except metadata.PackageNotFoundError: VALUE = 0
"""
# A directory of plug-ins beside that of the script, and enumerations of what is there.
BESIDE = """import os, pkgutil, sys
from importlib import metadata
PLACE = os.path.dirname(__file__) + '/../plugins'
"""
INSERT = "sys.path.insert(0, PLACE)\n"
ON_PATH = BESIDE + INSERT
COUNT = "VALUE = len(list(pkgutil.iter_modules([PLACE])))\n"
COUNT_INSTALLED = "VALUE = len(list(metadata.distributions(path=[PLACE])))\n"
IS_INSTALLED = """try: VALUE = int(metadata.version('optional')[0])
except metadata.PackageNotFoundError: VALUE = 0
"""
NO_PACKAGE = "VALUE = int(find_spec('sub').origin is not None)\n"
SHORT = "PLACE = os.path.abspath(PLACE)\n"
SLASH = "PLACE = os.path.abspath(PLACE) + '/'\n"
SEARCHES = {
    "an import": (IMPORT, "optional.py"),
    "an import of a package": (IMPORT, "optional/__init__.py"),
    "an import by a name": (BY_NAME, "optional.py"),
    "a look for a module": (LOOK, "optional.py"),
    "a list of modules": (MODULES, "optional.py"),
    "a list of installed packages": (INSTALLED, "optional-1.0.dist-info/METADATA"),
    "a version": (VERSION, "optional-1.0.dist-info/METADATA"),
    "modules beside": (BESIDE + SHORT + COUNT, "../plugins/optional.py"),
    "modules beside, by a path with dots": (BESIDE + COUNT, "../plugins/optional.py"),
    "modules beside, on the path with dots": (ON_PATH + COUNT, "../plugins/optional.py"),
    "modules beside, on the path with a slash": (BESIDE + SLASH + INSERT + COUNT, "../plugins/optional.py"),
    "a package among those beside": (BESIDE + SHORT + COUNT, "../plugins/sub/__init__.py"),
    "modules of a directory that comes": (BESIDE + "PLACE += '/new'\n" + COUNT, "../plugins/new/optional.py"),
    "modules of a directory that comes to the scripts": (
        BESIDE + "PLACE = os.path.dirname(__file__) + '/new'\n" + COUNT,
        "new/optional.py",
    ),
    "modules of a directory that comes to the working directory": (
        BESIDE + "PLACE = 'new'\n" + COUNT,
        "../work/new/optional.py",
    ),
    "a directory of the path that comes": (
        BESIDE + "PLACE += '/new'\n" + INSERT + IMPORT,
        "../plugins/new/optional.py",
    ),
    "a directory that becomes a package": (
        ON_PATH + "from importlib.util import find_spec\n" + NO_PACKAGE,
        "../plugins/sub/__init__.py",
    ),
    "a directory that becomes a package, on the path with dots": (
        ON_PATH + "try: from sub import VALUE\nexcept ImportError: VALUE = 0\n",
        "../plugins/sub/__init__.py",
    ),
    "a directory that becomes a package and hides a module": (
        BESIDE + "sys.path[:0] = [PLACE, PLACE + '/..']\nfrom sub import VALUE\n",
        "../plugins/sub/__init__.py",
    ),
    "packages of a directory that comes": (
        BESIDE + "PLACE += '/new'\n" + COUNT_INSTALLED,
        "../plugins/new/optional-1.0.dist-info",
    ),
    "packages of a directory that comes to the scripts": (
        BESIDE + "PLACE = os.path.dirname(__file__) + '/new'\n" + COUNT_INSTALLED,
        "new/optional-1.0.dist-info",
    ),
    "modules of the working directory": (BESIDE + "PLACE = os.getcwd()\n" + COUNT, "../work/optional.py"),
    "packages beside": (BESIDE + SHORT + COUNT_INSTALLED, "../plugins/optional-1.0.dist-info/METADATA"),
    "a version beside, on the path with dots": (ON_PATH + IS_INSTALLED, "../plugins/optional-1.0.dist-info/METADATA"),
    "a version beside, on the path with a slash": (
        BESIDE + SLASH + INSERT + IS_INSTALLED,
        "../plugins/optional-1.0.dist-info/METADATA",
    ),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_what_an_import_has_searched_for_is_found_once_it_is_there(rig: Rig, name: str) -> None:
    module, new = SEARCHES[name]
    (rig.directory / "plugins" / "sub").mkdir(parents=True)
    (rig.directory / "sub.py").write_text("VALUE = 0\n")
    script = script_of(rig, module)
    rig.start(script)
    assert rig.served(script).stdout == b"0 True\n"
    path = rig.directory / "bin" / new
    path.parent.mkdir(exist_ok=True)
    path.write_text("Metadata-Version: 2.1\nName: optional\nVersion: 1.0\n" if "METADATA" in new else "VALUE = 1\n")
    assert rig.warm(script).stdout == b"1 False\n"


@pytest.mark.parametrize("place", ["link", "link/", "link/../plugins"])
def test_modules_are_enumerated_where_a_link_leads_now(rig: Rig, place: str) -> None:
    for number in (1, 2):
        for below in ("release", "plugins"):
            (rig.directory / f"{number}" / below).mkdir(parents=True)
    for below in ("release", "plugins"):
        (rig.directory / "2" / below / "optional.py").touch()
    link, new = rig.directory / "bin" / "link", rig.directory / "new"
    link.symlink_to(rig.directory / "1" / "release")
    script = script_of(rig, BESIDE + f"PLACE = os.path.dirname(__file__) + '/{place}'\n" + COUNT)
    rig.start(script)
    assert rig.served(script).stdout == b"0 True\n"
    new.symlink_to(rig.directory / "2" / "release")
    new.rename(link)
    assert rig.warm(script).stdout == b"1 False\n"


def test_each_working_directory_has_its_own_enumerated_modules(rig: Rig) -> None:
    script = script_of(rig, BESIDE + "VALUE = len(list(pkgutil.iter_modules([os.getcwd()])))\n")
    rig.start(script)
    other = rig.directory / "other"
    other.mkdir()
    rig.start(script, cwd=other)
    assert rig.served(script, cwd=other).stdout == b"0 True\n"
    (other / "optional.py").touch()
    assert rig.warm(script, cwd=other).stdout == b"1 False\n"


def test_a_directory_of_the_path_that_comes_is_looked_in(rig: Rig) -> None:
    for name in ("new", "old"):
        (rig.directory / name).mkdir()
        (rig.directory / name / "mod.py").write_text(f"VALUE = {name!r}\n")
    env = rig.env | {"PYTHONPATH": f"{rig.directory}/to-be:{rig.directory}/old"}
    script = rig.script("who", "import sys, mod\n" + WARM)
    rig.start(script, env=env)
    assert rig.served(script, env=env).stdout == b"old True\n"
    (rig.directory / "new").rename(rig.directory / "to-be")
    assert rig.warm(script, env=env).stdout == b"new False\n"


def test_a_users_own_packages_that_come_are_found(rig: Rig) -> None:
    base = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info[1]}"
    if not base.exists():
        pytest.skip("there is no interpreter outside of a virtual environment")
    env = rig.env | {"HOME": str(rig.directory / "home")}
    shown = subprocess.run([base, "-m", "site", "--user-site"], env=env, capture_output=True, text=True, check=False)
    text = "import sys\ntry:\n    from optionalmod import VALUE\nexcept ImportError:\n    VALUE = 0\n"
    script = rig.script("who", text + "print(VALUE, '_unsnarl_warm' in sys.modules)\n")
    Path(script).write_text(f"#!{base}\n" + Path(script).read_text().partition("\n")[2])
    rig.start(script, env=env)
    assert rig.served(script, env=env).stdout == b"0 True\n"
    site = Path(shown.stdout.strip())
    site.mkdir(parents=True)
    (site / "optionalmod.py").write_text("VALUE = 1\n")
    assert rig.warm(script, env=env).stdout == b"1 False\n"
