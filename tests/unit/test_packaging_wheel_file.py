"""The wheels that ``scripts/wheels`` writes: names, members, and the same bytes for the same input."""

import base64
import csv
import hashlib
import zipfile
from pathlib import Path

import pytest
from distribution import wheel_file
from distribution.wheel_file import Target

EPOCH_S = 1_700_000_000


@pytest.fixture
def inputs(tmp_path: Path) -> tuple[Path, Path, Path, Path]:
    texts = {
        "files/unsnarl.pth": "import os",
        "files/unsnarl/__init__.py": "",
        "files/unsnarl/__pycache__/__init__.pyc": "stale",
        "unsnarl-1.2.dist-info/METADATA": "Name: unsnarl",
        "unsnarl-1.2.dist-info/RECORD": "stale",
        "native.so": "extension",
        "client": "executable",
    }
    for name, text in texts.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "files", tmp_path / "unsnarl-1.2.dist-info", tmp_path / "native.so", tmp_path / "client"


@pytest.mark.parametrize(
    ("target", "tag", "suffix"),
    [
        pytest.param(
            Target("3.13", "manylinux_2_17_x86_64"),
            "cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64",
            ".cpython-313-x86_64-linux-gnu.so",
            id="with-the-older-name",
        ),
        pytest.param(
            Target("3.11", "manylinux_2_28_aarch64"),
            "cp311-cp311-manylinux_2_28_aarch64",
            ".cpython-311-aarch64-linux-gnu.so",
            id="without",
        ),
        pytest.param(
            Target("3.14t", "musllinux_1_2_aarch64"),
            "cp314-cp314t-musllinux_1_2_aarch64",
            ".cpython-314t-aarch64-linux-musl.so",
            id="musl-without-a-gil",
        ),
    ],
)
def test_a_target_has_the_names_that_pip_and_the_interpreter_use(target: Target, tag: str, suffix: str) -> None:
    assert (target.tag, target.extension_suffix) == (tag, suffix)


def test_an_unknown_platform_ends_in_two_lines() -> None:
    with pytest.raises(SystemExit, match=r"error: no such platform: win_amd64\nhint: "):
        _ = Target("3.13", "win_amd64").tag


def test_a_wheel_has_every_file_and_its_digest(inputs: tuple[Path, Path, Path, Path], tmp_path: Path) -> None:
    target = Target("3.13", "musllinux_1_2_x86_64")
    wheel_file.write(tmp_path / "wheel", wheel_file.all_members(*inputs, target), EPOCH_S)
    with zipfile.ZipFile(tmp_path / "wheel") as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
        modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
    record = contents.pop("unsnarl-1.2.dist-info/RECORD").decode()
    assert set(contents) == {
        "unsnarl.pth",
        "unsnarl/__init__.py",
        "unsnarl/_native.cpython-313-x86_64-linux-musl.so",
        "unsnarl-1.2.data/scripts/unsnarl",
        "unsnarl-1.2.dist-info/METADATA",
        "unsnarl-1.2.dist-info/WHEEL",
    }
    assert modes["unsnarl-1.2.data/scripts/unsnarl"] == 0o755
    assert modes["unsnarl/__init__.py"] == 0o644
    rows = {row[0]: row[1:] for row in csv.reader(record.splitlines())}
    assert rows.pop("unsnarl-1.2.dist-info/RECORD") == ["", ""]
    for name, (digest, size) in rows.items():
        value = base64.urlsafe_b64encode(hashlib.sha256(contents[name]).digest()).decode().rstrip("=")
        assert (digest, int(size)) == (f"sha256={value}", len(contents[name]))
    assert rows.keys() == contents.keys()


def test_the_same_input_gives_the_same_bytes(inputs: tuple[Path, Path, Path, Path], tmp_path: Path) -> None:
    target = Target("3.12", "manylinux_2_17_aarch64")
    for name in ("first", "second"):
        wheel_file.write(tmp_path / name, wheel_file.all_members(*inputs, target), EPOCH_S)
        for path in inputs[0].rglob("*"):
            path.touch()  # dates of files do not count
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
