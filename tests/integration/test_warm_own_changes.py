"""A command that changes the environment or its directory before an import finds what a plain run finds."""

from __future__ import annotations

import zipfile
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


STATE = {
    "the directory, in another module": ("import cli\ncli.change()\n", "os.chdir('/')", "os.getcwd()"),
    "the time zone": ("import os, time\nos.environ['TZ'] = 'UTC-9'\ntime.tzset()\n", "", "__import__('time').timezone"),
    "a function": ("import os\nos.getppid = 'mine'.upper\n", "", "[os.getppid][0]()"),
    "a module's name": ("import sys, json\nsys.modules['q_x'] = json\n", "", "__import__('q_x').__name__"),
}


@pytest.mark.parametrize("what", STATE)
def test_what_else_of_the_process_the_command_changes_before(rig: Rig, what: str) -> None:
    text, change, value = STATE[what]
    cli = f"import os\ndef change():\n    {change or 'pass'}\n"
    _is_as_plain(rig, _command(rig, f"{text}import late\nprint(late.VALUE)\n", late=f"VALUE = {value}\n", cli=cli))


@pytest.mark.parametrize("where", ["own", "cli"])
def test_nothing_is_imported_ahead_where_parts_of_the_library_are_replaced(rig: Rig, where: str) -> None:
    """As gevent and eventlet do it; the names are what counts."""
    monkey = "import time\ndef patch_all():\n    time.sleep = print\n"
    own = "import monkey\nmonkey.patch_all()  # gevent\n" if where == "own" else "import cli\ncli.main()\n"
    cli = "def main():\n    import monkey\n    monkey.patch_all()  # gevent\n"
    late = "from time import sleep\nVALUE = sleep\n"
    script = _command(rig, f"{own}import late\nprint(late.VALUE)\n", late=late, monkey=monkey, cli=cli)
    for _ in range(3):
        assert rig.warm(script).stdout == b"<built-in function print>\n"
    assert rig.verb("start", "--", script).returncode == 1
    assert b"it replaces parts of the standard library, by patch_all()" in rig.verb("why", script).stdout


def test_what_a_module_imports_that_comes_after_a_change_of_the_process(rig: Rig) -> None:
    text = "import time\ntime.sleep = print\nimport late\nprint(late.VALUE)\n"
    late = "import dependency\nVALUE = dependency.VALUE\n"
    script = _command(rig, text, late=late, dependency="from time import sleep\nVALUE = sleep\n")
    for _ in range(3):
        rig.start(script)
        assert rig.served(script).stdout == b"<built-in function print>\n"
        rig.verb("stop", script)


def test_a_function_in_an_archive_that_sets_a_variable(rig: Rig) -> None:
    archive = rig.directory / "bin" / "parts.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("cli.py", "import os\ndef prepare():\n    os.environ['Q_X'] = 'set'\n")
    rig.env |= {"PYTHONPATH": str(archive)}
    script = _command(rig, "import cli\ncli.prepare()\nimport late\nprint(late.VALUE)\n", late=READS["one"])
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


def test_a_module_that_loads_a_library_whose_variable_the_command_sets(rig: Rig) -> None:
    text = (
        "import os, sys\nos.environ['OPENSSL_CONF'] = '/dev/null'\nprint('ssl' in sys.modules)\n"
        "import ssl\nprint(ssl.OPENSSL_VERSION, '_unsnarl_warm' in sys.modules)\n"
    )
    script = _command(rig, text)
    rig.start(script)
    warm = rig.served(script).stdout
    assert (warm[:6], warm[-5:]) == (b"False\n", b"True\n")
    assert (
        b"ssl loads a library that reads $OPENSSL_CONF, which the command may set before"
        in rig.verb("why", script).stdout
    )


LATE = "import os, early\nVALUE = os.environ.get('Q_X')\nearly.SEEN.append(VALUE)\n"


def test_what_is_imported_after_a_module_that_is_left_to_the_runs(rig: Rig) -> None:
    text = "import os, early\nos.environ['Q_X'] = 'set'\nimport late, after\nprint(late.VALUE, after.VALUE)\n"
    script = _command(rig, text, early="SEEN = []\n", late=LATE, after="import early\nVALUE = [*early.SEEN]\n")
    _is_as_plain(rig, script)
    rig.start(script)
    assert rig.served(script).stdout == b"set ['set']\n"
    why = rig.verb("why", script).stdout
    assert b"late is not imported ahead: late reads $Q_X, which the command may set before" in why
    assert b"after is not imported ahead: each run imports late before it" in why


def test_a_module_before_is_imported_ahead_all_the_same(rig: Rig) -> None:
    text = (
        "import os, sys\nprint('early' in sys.modules, 'late' in sys.modules)\nimport early\n"
        "os.environ['Q_X'] = 'set'\nimport late\nprint(late.VALUE, early.SEEN)\n"
    )
    script = _command(rig, text, early="SEEN = []\n", late=LATE)
    rig.start(script)
    assert rig.served(script).stdout == b"True False\nset ['set']\n"


def test_a_variable_that_a_module_sets_which_is_left_to_the_runs(rig: Rig) -> None:
    text = "import cli\ndef main():\n    cli.run()\nmain()\n"
    run = "def run():\n    import foreign_setter\n    import foreign_late\n    print(foreign_late.VALUE)\n"
    setter = "os.environ['Q_X'] = 'set'\n"
    script = _command(rig, text, cli=run, foreign_setter=setter, foreign_late=READS["one"])
    _is_as_plain(rig, script)


# As python-dotenv does it.
DOTENV = """
def load_dotenv(path='.env'):
    with open(os.path.join(os.path.dirname(__file__), path)) as file:
        pairs = dict(line.strip().split('=', 1) for line in file)
    for k, v in pairs.items():
        os.environ[k] = v
"""
COMPUTED = {
    "a loop": "for name, value in {'Q_' + 'X': 'set'}.items():\n    os.environ[name] = value\n",
    "update": "os.environ.update({'Q_' + 'X': 'set'})\n",
    "an alias": "env = os.environ\nenv.update([('Q_' + 'X', 'set')])\n",
    "a function": "def put(env):\n    env['Q_' + 'X'] = 'set'\nput(os.environ)\n",
    "removed": "os.environ.pop('Q_' + 'X', None)\n",
    "cleared": "os.environ.clear()\n",
    "a file": "from dotenv import load_dotenv\nload_dotenv()\n",
    "a file, renamed": "from dotenv import load_dotenv as read\nread()\n",
    "a function of another module": "import cli\ncli.prepare('Q_' + 'X')\n",
    "an alias of another module": "import alias\nalias.Env.put('Q_' + 'X')\n",
}


@pytest.mark.parametrize("change", COMPUTED)
@pytest.mark.parametrize("read", ["one", "a beginning"])
def test_a_name_that_is_put_together_at_run_time(rig: Rig, change: str, read: str) -> None:
    (rig.directory / "bin" / ".env").write_text("Q_X=set\n")
    text = f"import os\n{COMPUTED[change]}import late\nprint(late.VALUE)\n"
    script = _command(
        rig,
        text,
        late=READS[read],
        dotenv=DOTENV,
        cli="def prepare(name):\n    os.environ[name] = 'set'\n",
        alias="class Env:\n    ENV = os.environ\n    def put(name):\n        Env.ENV.setdefault(name, 'set')\n",
    )
    _is_as_plain(rig, script, **({"Q_X": "of the caller"} if change in ("removed", "cleared") else {}))


def test_a_file_that_only_some_runs_read(rig: Rig) -> None:
    """As flask does it: it loads dotenv, where there is a file, after it has been learned without one."""
    run = (
        "def run():\n    if os.path.exists(os.path.join(os.path.dirname(__file__), '.env')):\n"
        "        import dotenv\n        dotenv.load_dotenv()\n    import late\n    print(late.VALUE)\n"
    )
    script = _command(rig, "import cli\ncli.run()\n", cli=run, late=READS["one"], dotenv=DOTENV)
    _is_as_plain(rig, script)
    (rig.directory / "bin" / ".env").write_text("Q_X=set\n")
    _is_as_plain(rig, script)


def test_what_reads_no_variable_is_imported_ahead_after_a_file_was_read(rig: Rig) -> None:
    (rig.directory / "bin" / ".env").write_text("Q_X=set\n")
    text = (
        "import os, sys\nfrom dotenv import load_dotenv\nload_dotenv()\n"
        "print('other' in sys.modules)\nimport other, late\nprint(late.VALUE)\n"
    )
    script = _command(rig, text, late=READS["one"], other="", dotenv=DOTENV)
    rig.start(script)
    assert rig.served(script).stdout == b"True\nset\n"


# Of an installed package: syntax does not tell which variable it sets, or that it changes the directory.
HIDDEN = {
    "a name put together": "def prepare():\n    os.environ['Q_' + 'X'] = 'set'\n",
    "for a while": (
        "def prepare():\n    os.environ['Q_' + 'X'] = 'set'\ndef finish():\n    del os.environ['Q_' + 'X']\n"
    ),
    "by the body of a module": "def prepare():\n    import sets\n",
}


def _installed(rig: Rig, **modules: str) -> None:
    (directory := rig.directory / "site-packages").mkdir()
    for name, source in modules.items():
        (directory / f"{name}.py").write_text(f"import os\n{source}")
    rig.env |= {"PYTHONPATH": str(directory)}


@pytest.mark.parametrize("change", HIDDEN)
@pytest.mark.parametrize("read", ["one", "a beginning"])
def test_what_runs_were_seen_to_change_before_a_module_that_only_they_load(rig: Rig, change: str, read: str) -> None:
    _installed(rig, tool=HIDDEN[change], sets="os.environ['Q_' + 'X'] = 'set'\n", late=READS[read])
    finish = "    getattr(tool, 'finish', int)()\n"
    run = f"def run():\n    import tool\n    tool.prepare()\n    import late\n{finish}    print(late.VALUE)\n"
    _is_as_plain(rig, _command(rig, "import cli\ncli.run()\n", cli=run))


def test_a_change_that_only_a_later_run_makes_is_made_good_by_the_next_one(rig: Rig) -> None:
    _installed(rig, tool=HIDDEN["a name put together"], late=READS["one"])
    run = (
        "def run():\n    if len(sys.argv) > 1:\n        import tool\n        tool.prepare()\n"
        "    import late\n    print(late.VALUE)\n"
    )
    script = _command(rig, "import cli\ncli.run()\n", cli=f"import sys\n{run}")
    rig.start(script)
    assert rig.served(script).stdout == b"None\n"
    rig.verb("stop", script)
    rig.start(script)  # `late` is imported ahead now
    rig.warm(script, "set")
    for _ in range(2):
        assert rig.warm(script, "set").stdout == b"set\n", rig.log()
        assert rig.warm(script).stdout == b"None\n"
    assert "ends, a run has changed $Q_X, which its imports have read" in rig.log()
    rig.start(script)
    assert rig.served(script, "set").stdout == b"set\n"
    assert b"late is not imported ahead: late reads $Q_X" in rig.verb("why", script).stdout


def test_a_function_that_runs_were_seen_to_replace(rig: Rig) -> None:
    late = "from time import sleep\nVALUE = sleep\n"
    _installed(rig, tool="import time\ndef prepare():\n    setattr(time, 'sle' + 'ep', print)\n", late=late)
    run = "def run():\n    import tool\n    tool.prepare()\n    import late\n    print(late.VALUE)\n"
    script = _command(rig, "import cli\ncli.run()\n", cli=run)
    _is_as_plain(rig, script)
    assert b"late keeps time.sleep, which the command may replace before" in rig.verb("why", script).stdout


def test_the_directory_that_runs_were_seen_to_change(rig: Rig) -> None:
    _installed(rig, tool="def prepare():\n    os.chdir('/')\n", late="VALUE = os.getcwd()\n")
    run = "def run():\n    import tool\n    tool.prepare()\n    import late\n    print(late.VALUE)\n"
    _is_as_plain(rig, _command(rig, "import cli\ncli.run()\n", cli=run))


def test_a_run_that_becomes_another_program_has_reported_its_change(rig: Rig) -> None:
    _installed(rig, tool=HIDDEN["a name put together"], late=READS["one"])
    run = (
        "def run():\n    import late\n    if len(sys.argv) > 1:\n        import tool\n        tool.prepare()\n"
        "        os.execv('/bin/echo', ['echo', late.VALUE or 'none'])\n"
    )
    script = _command(rig, "import cli\ncli.run()\n", cli=f"import sys\n{run}")
    rig.start(script)
    rig.served(script)
    rig.verb("stop", script)
    rig.start(script)
    assert rig.served(script, "set").stdout == b"none\n"
    assert [path.read_text() for path in rig.house.glob("*.changed")] == ["Q_X\t\n"]


def test_what_only_runs_load_is_imported_ahead_in_their_order(rig: Rig) -> None:
    names = [f"q_{letter}" for letter in "hdbgafec"]
    body = "import q_all\nq_all.ALL.append(__name__)\n"
    _installed(rig, q_all="ALL = []\n", **dict.fromkeys(names, body))
    run = f"def run():\n    for name in {names}:\n        __import__(name)\n    import q_all\n    print(q_all.ALL)\n"
    script = _command(rig, "import cli\ncli.run()\n", cli=run)
    _is_as_plain(rig, script)
    rig.start(script)
    assert rig.served(script).stdout == f"{names}\n".encode()
    (facts,) = rig.house.glob("*.facts")
    assert "module\tq_h\n" in facts.read_text()


def test_the_first_run_finds_what_an_installed_package_sets(rig: Rig) -> None:
    _installed(rig, tool=HIDDEN["a name put together"], late=READS["one"])
    run = "    if len(sys.argv) > 1:\n        tool.prepare()\n    import late\n    print(late.VALUE)\nmain()\n"
    script = _command(rig, f"import sys\nimport tool\ndef main():\n{run}")
    rig.start(script)
    assert rig.served(script, "set").stdout == b"set\n"


def test_what_an_installed_package_might_set_is_imported_ahead_once_a_run_has_left_it_alone(rig: Rig) -> None:
    _installed(rig, tool=HIDDEN["a name put together"], late=READS["one"])
    run = "    if len(sys.argv) > 1:\n        tool.prepare()\n    import late\n    print(late.VALUE)\nmain()\n"
    script = _command(rig, f"import sys\nimport tool\ndef main():\n{run}")
    for is_ahead in (False, True):
        rig.start(script)
        (facts,) = rig.house.glob("*.facts")
        assert ("module\tlate\n" in facts.read_text()) == is_ahead
        assert rig.served(script).stdout == b"None\n"
        rig.verb("stop", script)
