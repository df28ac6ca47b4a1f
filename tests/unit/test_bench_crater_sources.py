"""``scripts/crater``: where the tests of a suite come from, and what is made beside the installed packages."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench.crater import preparation
from bench.crater.manifest import Suite


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository whose tag `v1` has tests that the newest commit has not."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder = tmp_path / "upstream"
    folder.mkdir()

    def git(*words: str) -> None:
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgSign=false"]
        subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)

    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text("def test_it(): pass\n")
    (folder / "src").mkdir()
    (folder / "src" / "thing.py").write_text("")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "-m", "one")
    git("tag", "v1")
    git("rm", "--quiet", "-r", "tests")
    git("commit", "--quiet", "-m", "two")
    return folder


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def environment(*_: object) -> Path:
        return Path(sys.executable)

    monkeypatch.setattr(preparation, "_environment", environment)


def suite_of(repository: Path, tests: str = "tests", tag: str = "v1") -> Suite:
    return Suite("thing", "1", (tests,), source="git", repository=repository.as_uri(), tag=tag, remove=("src",))


@pytest.mark.usefixtures("no_environment")
def test_tests_come_from_the_tag_of_a_repository(repository: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    _, tree = preparation.prepare(suite_of(repository), cache, tmp_path, "python")
    assert (tree / "tests" / "test_it.py").is_file()
    assert not (tree / "src").exists()
    (tree / "kept").write_text("")
    assert preparation.prepare(suite_of(repository), cache, tmp_path, "python")[1] == tree
    assert (tree / "kept").exists()


@pytest.mark.usefixtures("no_environment")
@pytest.mark.parametrize(
    ("tests", "tag", "said"),
    [
        ("nowhere", "v1", r"its repository has no nowhere$"),
        ("tests", "v2", r"no repository: .*refs/tags/v2"),
    ],
)
def test_a_repository_without_the_tests_is_said_to_have_none(
    repository: Path, tmp_path: Path, tests: str, tag: str, said: str
) -> None:
    with pytest.raises(preparation.Unprepared, match=said):
        preparation.prepare(suite_of(repository, tests, tag), tmp_path / "cache", tmp_path, "python")


def test_empty_folders_are_made_beside_the_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / "venv" / "lib" / "python3.13" / "site-packages"
    made: list[str] = []

    def call(words: list[str], what: str) -> None:
        made.append(what)
        packages.mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(preparation, "_call", call)
    wheel = tmp_path / "unsnarl-1-cp313-cp313-linux_x86_64.whl"
    wheel.write_bytes(b"")
    plain = Suite("thing", "1", ("tests",), source="wheel")
    preparation.prepare(plain, tmp_path, wheel, "python")
    assert list(packages.iterdir()) == []
    preparation.prepare(Suite("thing", "1", ("tests",), source="wheel", folders=("thing/images",)), tmp_path, wheel, "")
    assert (packages / "thing" / "images").is_dir()
    assert len(made) == 6  # the environment is another one with them, so it was made anew
