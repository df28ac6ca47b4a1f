"""A sweep removes expired files from the runtime directory, and no others."""

import fcntl
import os
import time
from pathlib import Path

import pytest

from unsnarl.warm import facts as facts_of
from unsnarl.warm.managing import sweep

KEY, COMMAND = "a" * 32, "b" * 32


def aged(directory: Path, age_s: float, *names: str) -> None:
    """Write files that are that old."""
    then = time.time() - age_s
    for name in names:
        path = directory / name
        if not path.exists():
            path.write_bytes(b"")
        os.utime(path, (then, then))


def left(directory: Path) -> set[str]:
    """Return what is there after a sweep."""
    sweep.sweep(str(directory))
    return set(os.listdir(directory))


def test_the_files_of_a_key_without_a_server_expire(tmp_path: Path) -> None:
    aged(
        tmp_path,
        sweep.KEY_EXPIRES_S + 60,
        f"{KEY}.lock",
        f"{KEY}.info",
        f"{KEY}.rec",
        f"{KEY}.pages.7",
        "else",
        "x.log",
    )
    assert left(tmp_path) == {"else", "x.log"}


def test_the_files_of_a_served_or_recent_key_do_not(tmp_path: Path) -> None:
    files = {f"{KEY}.lock", f"{KEY}.info"}
    aged(tmp_path, sweep.KEY_EXPIRES_S + 60, *files)
    with open(tmp_path / f"{KEY}.lock", "rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert left(tmp_path) == files
    aged(tmp_path, 60, f"{KEY}.info")
    assert left(tmp_path) == files


@pytest.mark.parametrize(("age_s", "is_there", "is_over"), [
    (sweep.KEY_EXPIRES_S + 60, True, False),
    (sweep.KEY_EXPIRES_S + 60, False, True),
    (60, False, False),
    (sweep.COMMAND_EXPIRES_S + 60, True, True),
])  # fmt: skip
def test_what_was_learned_goes_with_the_script(tmp_path: Path, age_s: float, is_there: bool, is_over: bool) -> None:
    script = tmp_path / "script"
    if is_there:
        script.write_text("")
    directory = tmp_path / "directory"
    directory.mkdir()
    facts = facts_of.Facts()
    facts.command = str(script)
    facts_of.store(facts, str(directory / COMMAND))
    files = {f"{COMMAND}.facts", f"{COMMAND}.rec", f"{COMMAND}.log"}
    aged(directory, age_s, *files)
    assert left(directory) == (set() if is_over else files)
