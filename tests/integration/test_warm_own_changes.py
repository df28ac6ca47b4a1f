"""A command that changes the environment or its directory before an import finds what a plain run finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

READS = {
    "one": "VALUE = os.environ.get('Q_X')\n",
    "a beginning": "VALUE = [value for name, value in os.environ.items() if name.startswith('Q_')]\n",
    "a copy": "VALUE = os.environ.copy().get('Q_X')\n",
    "bytes": "VALUE = os.environb.get(b'Q_X')\n",
}
CHANGES = {
    "set": "os.environ['Q_X'] = 'set'\n",
    "set by default": "os.environ.setdefault('Q_X', 'set')\n",
    "set by name": "os.environ.update(Q_X='set')\n",
    "bytes": "os.environb[b'Q_X'] = b'set'\n",
    "removed": "os.environ.pop('Q_X', None)\n",
}


def _command(rig: Rig, text: str, **modules: str) -> str:
    for name, source in modules.items():
        (rig.directory / "bin" / f"{name}.py").write_text(f"import os\n{source}")
    return rig.script("who", text)


def _is_as_plain(rig: Rig, script: str, **more: str) -> None:
    """Check that a command prints the same as plainly, with what is learned at first and with what its runs load."""
    for _ in range(2):
        rig.verb("start", "--", script, env=rig.env | more)
        for _ in range(2):
            warm, plain = (run(script, env=rig.env | more) for run in (rig.warm, rig.plain))
            assert (warm.returncode, warm.stdout) == (plain.returncode, plain.stdout), rig.log()
        rig.verb("stop", script)


@pytest.mark.parametrize("read", READS)
def test_a_module_that_reads_what_the_command_sets_before(rig: Rig, read: str) -> None:
    script = _command(rig, "import os\nos.environ['Q_X'] = 'set'\nimport late\nprint(late.VALUE)\n", late=READS[read])
    _is_as_plain(rig, script)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("where", ["before", "in a function", "in a branch"])
def test_each_way_to_change_a_variable(rig: Rig, change: str, where: str) -> None:
    text = {
        "before": f"{CHANGES[change]}import late\n",
        "in a function": f"def main():\n    {CHANGES[change]}    global late\n    import late\nmain()\n",
        "in a branch": f"if os.sep:\n    {CHANGES[change]}    import late\n",
    }[where]
    script = _command(rig, f"import os\n{text}print(late.VALUE)\n", late=READS["one"])
    _is_as_plain(rig, script, Q_X="of the caller")


def test_a_variable_that_a_function_of_another_module_sets(rig: Rig) -> None:
    text = "import cli\ndef main():\n    cli.prepare()\n    import late\n    print(late.VALUE)\nmain()\n"
    prepare = "def prepare():\n    os.environ['Q_X'] = 'set'\n"
    script = _command(rig, text, late=READS["one"], cli=prepare)
    _is_as_plain(rig, script)
    assert b"late reads $Q_X, which the command may set before" in rig.verb("why", script).stdout


def test_the_working_directory_that_the_command_changes_before(rig: Rig) -> None:
    script = _command(rig, "import os\nos.chdir('/')\nimport late\nprint(late.VALUE)\n", late="VALUE = os.getcwd()\n")
    _is_as_plain(rig, script)


def test_another_variable_is_read_ahead(rig: Rig) -> None:
    text = "import os, sys\nos.environ['Q_X'] = 'set'\nimport late\nprint(late.VALUE, '_unsnarl_warm' in sys.modules)\n"
    script = _command(rig, text, late="VALUE = os.environ.get('Q_OTHER')\n")
    rig.start(script, env=rig.env | {"Q_OTHER": "0"})
    for value in ("1", "2"):
        assert rig.served(script, env=rig.env | {"Q_OTHER": value}).stdout == f"{value} True\n".encode()
    assert b"late.VALUE (env:Q_OTHER)" in rig.verb("why", script, env=rig.env | {"Q_OTHER": "1"}).stdout


def test_a_module_that_is_imported_before_the_change_is_imported_ahead(rig: Rig) -> None:
    text = "import os, sys, early\nos.environ['Q_X'] = 'set'\nprint(early.VALUE, '_unsnarl_warm' in sys.modules)\n"
    script = _command(rig, text, early=READS["one"])
    rig.start(script, env=rig.env | {"Q_X": "of another caller"})
    assert rig.served(script, env=rig.env | {"Q_X": "of the caller"}).stdout == b"of the caller True\n"


def test_a_variable_of_a_library_that_the_command_sets(rig: Rig) -> None:
    text = (
        "import os, sys\nos.environ['OPENSSL_CONF'] = '/dev/null'\nimport ssl\nprint('_unsnarl_warm' in sys.modules)\n"
    )
    script = _command(rig, text)
    assert rig.verb("start", "--", script).returncode == 1
    assert b"a library reads $OPENSSL_CONF when it is loaded" in rig.verb("why", script).stdout
    assert rig.warm(script).stdout == b"False\n"
