"""``scripts/debian-root``: what it refuses, and what a failed ``--refresh`` leaves; nothing is downloaded here."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.shell_programs import add_program

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "debian-root"
QEMU = Path("/proc/sys/fs/binfmt_misc")


def test_another_architecture_takes_a_bare_root(tmp_path: Path) -> None:
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [SCRIPT, "--arch", "riscv64", "--refresh"], env=env, capture_output=True, text=True, check=False
    )
    said = "error: --arch riscv64 without --bare\nhint: name the suite: --bare sid --arch riscv64\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_refresh_leaves_the_root_that_was_there(tmp_path: Path) -> None:
    if not any(QEMU.glob("qemu-*")):
        pytest.skip("no qemu-user is registered with this kernel")
    programs = {
        "id": "echo 0",
        "unshare": "exit 0",
        "apt-get": "echo https://deb.example/debian/",
        "dpkg": "echo amd64",
        "mmdebstrap": "echo 'E: the mirror is gone'; exit 1",
    }
    stubs = tmp_path / "stubs"
    for name, body in programs.items():
        add_program(stubs / name, body)
    kept = tmp_path / "unsnarl" / "bare-sid-riscv64" / ".complete"
    kept.parent.mkdir(parents=True)
    kept.touch()
    env = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PATH": f"{stubs}:{os.environ['PATH']}"}
    words = [str(SCRIPT), "--refresh", "--bare", "sid", "--arch", "riscv64"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 77
    assert "error: no Debian sid root: E: the mirror is gone\n" in done.stderr
    assert kept.exists()
