"""A worker serves only callers with its own root directory: the same mount, not only the same inode."""

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import NOT_WARM, UNSNARL

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

CALLS = """
set -e
mount --rbind / "$root"
mount --bind "$inner" "$root$outer"
"$unsnarl" warm start -- "$outer"
"$unsnarl" warm run --require -- "$outer"
chroot "$root" "$unsnarl" warm run --require -- "$outer" 2>&- || echo status $?
chroot "$root" "$unsnarl" warm run -- "$outer"
"$unsnarl" warm stop
"""
"""A chroot into a bind mount of ``/`` has its device and inode; beneath it, another file has the script's name."""


def test_a_chroot_into_a_bind_mount_of_the_root_gets_no_worker_from_outside(rig: "Rig") -> None:
    if shutil.which("unshare") is None:
        pytest.skip("this machine has no unshare(1)")
    become = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    root = rig.directory / "root"
    root.mkdir()
    probe = rig.plain(*become, "mount", "--rbind", "/", str(root))
    if probe.returncode != 0:
        pytest.skip(f"no mount namespace here: {probe.stderr.decode().strip()}")
    variables = {
        "root": str(root),
        "outer": rig.script("which", "print('outer')\n"),
        "inner": rig.script("other", "print('inner')\n"),
        "unsnarl": UNSNARL,
    }
    outcome = rig.plain(*become, "sh", "-c", CALLS, env=rig.env | variables)
    assert outcome.returncode == 0, outcome.stderr.decode() + rig.log()
    assert outcome.stdout.decode().splitlines() == ["outer", f"status {NOT_WARM}", "inner"]
