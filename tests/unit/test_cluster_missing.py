"""Without the extra, `unsnarl.cluster` says how to install it; nothing of `unsnarl` itself needs it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Programs

HIDDEN = "import sys\nsys.modules['unsnarl_cluster'] = None\n"


def test_the_import_names_the_extra(programs: "Programs") -> None:
    outcome = programs.python("-c", HIDDEN + "from unsnarl import cluster")
    assert "pip install 'unsnarl[cluster]'" in outcome.complaint


def test_the_command_says_it_in_two_lines(programs: "Programs") -> None:
    code = HIDDEN + "from unsnarl.cli import main\nsys.exit(main(['cluster', 'list', 'etcd://127.0.0.1']))"
    outcome = programs.python("-c", code)
    assert outcome.status == 1
    assert outcome.complaint == ("error: unsnarl-cluster is not installed\nhint: pip install 'unsnarl[cluster]'\n")
