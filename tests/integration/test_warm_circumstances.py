"""Imports depend on circumstances: the terminal, variables, the moment. Each run gets the results of its own.

Invariant: no run is served by what was imported in circumstances that its own imports would have distinguished.
"""

import datetime as dt
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.integration.conftest import NOT_WARM, UNSNARL
from tests.integration.test_warm_commands import on_a_terminal
from tests.integration.waiting import until
from unsnarl.warm.serving import file_watch

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

WARM = "print(mod.VALUE, 'warm' if '_unsnarl_warm' in sys.modules else 'plain')\n"


def script_of(rig: "Rig", module: str) -> str:
    """Write a command whose module has a ``VALUE``."""
    (rig.directory / "bin" / "mod.py").write_text(module)
    return rig.script("who", "import sys, mod\n" + WARM)


def test_a_variable_that_is_read_on_a_terminal_only_tells_servers_apart(rig: "Rig") -> None:
    script = script_of(rig, "import os, sys\nVALUE = sys.stdout.isatty() and 'NO_COLOR' not in os.environ\n")
    rig.env.pop("NO_COLOR", None)
    rig.start(script)
    assert rig.served(script).stdout == b"False warm\n"
    for env in (rig.env, rig.env | {"NO_COLOR": "1"}):
        rig.env = env
        on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)
        status, shown = on_a_terminal(rig, UNSNARL, "warm", "run", "--require", "--", script)
        assert (status, shown) == (0, on_a_terminal(rig, script)[1].replace(b"plain", b"warm")), rig.log()
    assert b"NO_COLOR" in rig.verb("why", script).stdout


def test_a_variable_that_is_read_with_another_set_tells_servers_apart(rig: "Rig") -> None:
    text = "import os\nVALUE = os.environ.get('LEVEL', 'none') if os.environ.get('LOGGING') else 'off'\n"
    script = script_of(rig, text)
    rig.start(script)
    assert rig.served(script).stdout == b"off warm\n"
    for level in ("one", "two"):
        env = rig.env | {"LOGGING": "1", "LEVEL": level}
        rig.start(script, env=env)
        assert rig.served(script, env=env).stdout == f"{level} warm\n".encode()


@pytest.mark.parametrize(
    ("what", "reason"),
    [
        ("os.getppid()", b"asks for the parent process"),
        ("os.chdir('/')", b"changes the working directory"),
    ],
    ids=["parent", "directory"],
)
@pytest.mark.parametrize("is_on_terminal", [False, True], ids=["pipes", "terminal"])
def test_what_is_done_with_a_variable_set_is_done_plainly(
    rig: "Rig", what: str, reason: bytes, is_on_terminal: bool
) -> None:
    text = f"import os, sys\nVALUE = sys.stdout.isatty()\nif os.environ.get('DEBUG'):\n    {what}\n"
    script = script_of(rig, text)
    rig.start(script)
    assert rig.served(script).stdout == b"False warm\n"
    plain_env, rig.env = rig.env, rig.env | {"DEBUG": "1"}
    if is_on_terminal:
        assert on_a_terminal(rig, UNSNARL, "warm", "start", "--", script)[0] == 1
        assert on_a_terminal(rig, UNSNARL, "warm", "run", "--", script) == on_a_terminal(rig, script)
    else:
        assert rig.verb("start", "--", script).returncode == 1
        assert rig.warm(script).stdout == rig.plain(script).stdout
        assert rig.served(script).returncode == NOT_WARM
    said = rig.verb("why", script).stdout
    # On the pipes of this very call: the terminal's calls are not its.
    assert (b"runs warm" if is_on_terminal else b"runs plainly, with the settings of this call") in said
    assert reason in said
    rig.env = plain_env
    assert rig.served(script).stdout == b"False warm\n"


def test_a_module_that_only_some_circumstances_import_is_not_the_others(rig: "Rig") -> None:
    (rig.directory / "bin" / "extra.py").write_text("import os\nos.environ.get('OTHER')\n")
    text = "import os, sys\nif os.environ.get('EXTRA'):\n    import extra\nVALUE = 'extra' in sys.modules\n"
    script = script_of(rig, text)
    env = rig.env | {"EXTRA": "1"}
    for _ in range(2):
        rig.start(script, env=env)
        assert rig.served(script, env=env).stdout == b"True warm\n"
        rig.start(script)
        assert rig.served(script).stdout == b"False warm\n"
        rig.verb("stop")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("time.strftime('%Y-%m-%d')", "mod.VALUE == time.strftime('%Y-%m-%d')"),
        ("datetime.date.today().year", "mod.VALUE == datetime.date.today().year"),
        ("datetime.date.today().isoformat()", "mod.VALUE == datetime.date.today().isoformat()"),
        ("{'start': time.time()}", "mod.VALUE"),
        ("str(uuid.uuid4())", "mod.VALUE"),
        ("f'run-{os.getpid()}'", "mod.VALUE == f'run-{os.getpid()}'"),
        ("os.urandom(8)", "mod.VALUE"),
        ("-time.time()", "mod.VALUE"),
    ],
)
def test_what_is_made_of_the_moment_is_not_kept(rig: "Rig", value: str, shown: str) -> None:
    script_of(rig, f"import datetime, os, time, uuid\nVALUE = {value}\n")
    script = rig.script("who", f"import datetime, os, sys, time, mod\nprint({shown}, '_unsnarl_warm' in sys.modules)\n")
    rig.start(script)
    reasons = rb"is made of the time of its import|keeps the time of its import|differs from run to run"
    assert re.search(rb"mod\.VALUE (" + reasons + rb")", said(rig, script))
    outputs = [rig.served(script).stdout for _ in range(2)]
    assert all(output.endswith(b" True\n") for output in outputs)
    assert outputs[0] == outputs[1] if shown != "mod.VALUE" else outputs[0] != outputs[1]


def said(rig: "Rig", script: str) -> bytes:
    return rig.verb("why", script).stdout


def test_a_class_is_looked_into(rig: "Rig") -> None:
    script = script_of(rig, "import time\nclass Run:\n    started = time.time()\nVALUE = 1\n")
    rig.start(script)
    assert b"mod.Run.started" in said(rig, script)


def test_the_number_of_the_process_is_the_workers(rig: "Rig") -> None:
    script = script_of(rig, "import os\nVALUE = os.getpid()\n")
    script = rig.script("who", "import os, sys, mod\nprint(mod.VALUE == os.getpid(), '_unsnarl_warm' in sys.modules)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True True\n"
    assert b"set again in each run: mod.VALUE (getpid)" in said(rig, script)


def test_random_digits_are_others_in_each_run(rig: "Rig") -> None:
    script = script_of(rig, "import uuid\nVALUE = ID = uuid.uuid4().hex\n")
    rig.start(script)
    one, other = (rig.served(script).stdout for _ in range(2))
    assert one != other
    assert re.fullmatch(rb"[0-9a-f]{32} warm\n", one)
    script = rig.script("two", "import mod\n")
    (rig.directory / "bin" / "mod.py").write_text(
        "import hashlib, uuid\nA = uuid.uuid4().hex\nB = hashlib.md5(A.encode()).hexdigest()\n"
    )
    rig.start(script)
    assert b"mod.A differs" in said(rig, script) or b"mod.B differs" in said(rig, script)


def test_random_digits_in_several_places_are_one_value(rig: "Rig") -> None:
    script_of(rig, "import uuid\nVALUE = ID = uuid.uuid4().hex\n")
    script = rig.script("who", "import sys, mod\nprint(mod.VALUE == mod.ID, '_unsnarl_warm' in sys.modules)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True True\n"


MADE = """\
import atexit, os, shutil, tempfile
from atexit import register
VALUE = tempfile.mkdtemp(dir={directory!r}, prefix=f"made-{{os.getpid()}}-")
register(shutil.rmtree, VALUE, ignore_errors=False)
"""


def made_in(rig: "Rig") -> list[str]:
    return [path.name for path in rig.directory.glob("made-*")]


def test_a_temporary_directory_is_made_anew_in_each_run(rig: "Rig") -> None:
    """Ansible makes one when it is imported, and removes it when it ends: every run has its own."""
    text = (
        "from shutil import rmtree\nAGAIN = VALUE\nclass Path(str): __slots__ = 'origin', '__dict__'\n"
        "TAGGED = ALSO = Path(VALUE)\nTAGGED.origin, TAGGED.more = 'default', 1\n"
    )
    script_of(rig, MADE.format(directory=str(rig.directory)) + text)
    script = rig.script(
        "who",
        "import os, stat, sys, mod\nfrom mod import VALUE\nnumber = VALUE.split('-')[-2]\n"
        "mode, tagged = stat.filemode(os.stat(VALUE).st_mode), mod.TAGGED\n"
        "print(VALUE, mod.AGAIN is VALUE is mod.VALUE, int(number) == os.getpid(), mode)\n"
        "print(tagged is mod.ALSO, type(tagged).__name__, tagged == VALUE, tagged.origin, tagged.more)\n"
        "print(mod.register is __import__('atexit').register, mod.tempfile.mkdtemp.__module__)\n"
        "open(VALUE + '/file', 'w').close()\nif sys.argv[1:]: mod.atexit.unregister(mod.rmtree)\n"
        "assert '_unsnarl_warm' in sys.modules\n",
    )
    rig.start(script)
    assert made_in(rig) == [], "neither the learning run nor the server leaves one behind"
    seen = set[bytes]()
    for _ in range(3):
        first, tagged, second = rig.served(script).stdout.splitlines()
        assert tagged == b"True Path True default 1"
        path, *rest = first.split()
        assert rest == [b"True", b"True", b"drwx------"]
        assert second == b"True tempfile"
        seen.add(path)
        assert made_in(rig) == [], "each run removes its own"
    assert len(seen) == 3
    assert b"mod.VALUE" in said(rig, script)
    rig.served(script, "keep")
    assert len(made_in(rig)) == 1, "what is registered for the end can be found there, and taken out"


def test_what_is_registered_for_the_end_keeps_what_is_bound_in_it(rig: "Rig") -> None:
    text = (
        "import os, tempfile\nfrom atexit import register, unregister\nfrom functools import partial\n"
        "class Text(str): pass\n"
        f"VALUE = tempfile.mkdtemp(None, Text('made-'), {str(rig.directory)!r})\n"
        "def say(*words): pass\n"
        "def leave(word, path, *, sign): say(word, os.path.basename(path)[:5], sign)\n"
        "LEAVE = partial(leave, 'bye', sign='!')\nregister(LEAVE, VALUE)\nregister(os.rmdir, VALUE)\n"
    )
    script_of(rig, text)
    script = rig.script("who", "import sys, mod\nmod.say = print\nif sys.argv[1:]: mod.unregister(mod.LEAVE)\n")
    rig.start(script)
    assert rig.served(script).stdout == rig.plain(script).stdout == b"bye made- !\n"
    assert rig.served(script, "silent").stdout == b""
    assert made_in(rig) == []


def test_a_run_whose_temporary_directory_cannot_be_made_is_plain(rig: "Rig") -> None:
    place = rig.directory / "place"
    place.mkdir()
    script = script_of(rig, MADE.format(directory=str(place)) + "KIND = os.path.isdir(VALUE)\n")
    rig.script("who", "import sys, mod\nprint(mod.KIND, '_unsnarl_warm' in sys.modules)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True True\n"
    place.rmdir()
    outcome = rig.warm(script)
    assert (outcome.returncode, outcome.stdout) == (1, b""), "the plain run fails for want of it"
    assert b"FileNotFoundError" in outcome.stderr
    place.mkdir()
    assert rig.served(script).stdout == b"True True\n"
    assert "FileNotFoundError" in rig.log()


@pytest.mark.parametrize(
    "text",
    [
        "class Path(str): __reduce__ = None\nVALUE = Path(VALUE)",
        "FILE = os.path.join(VALUE, 'file')",
        "def where(place=VALUE): return place",
        "NAMES = {'place': (VALUE, 'other')}",
        "CACHE = {VALUE: 1}",
        "class Config: pass\nconfig = Config()\nconfig.place = VALUE",
        "RAW = os.fsencode(VALUE)",
        "exec(f'def where(): return {VALUE!r}')",
        "register(lambda path=VALUE: shutil.rmtree(path, ignore_errors=True))",
        "register(os.path.join, VALUE, VALUE + '/file')",
        "register(os.path.exists, path=VALUE + '/file')",
        "os.mkdir(VALUE + '/in')",
        "os.chmod(VALUE, 0o755)",
    ],
)
def test_a_temporary_directory_that_others_know_rules_the_module_out(rig: "Rig", text: str) -> None:
    script = script_of(rig, MADE.format(directory=str(rig.directory)) + text + "\n")
    rig.start(script)
    assert b"mod makes the temporary" in said(rig, script)
    assert rig.served(script).stdout.rstrip().endswith(b"warm")


@pytest.mark.parametrize("last", [0, 1])
def test_a_temporary_directory_whose_name_is_drawn_rules_the_module_out(rig: "Rig", last: int) -> None:
    prefixes = ["made-", "made-"]
    prefixes[last] = "made-{random.random()}"
    made = [f"tempfile.mkdtemp(dir={str(rig.directory)!r}, prefix=f'{prefix}')" for prefix in prefixes]
    script = script_of(rig, f"import random, tempfile\nOTHER = {made[0]}\nVALUE = {made[1]}\n")
    rig.start(script)
    assert b"differs from run to run" in said(rig, script)


@pytest.mark.parametrize("where", ["os.path.dirname(__file__)", "os.getcwd()"])
def test_a_temporary_directory_where_changes_are_watched_for_rules_the_module_out(rig: "Rig", where: str) -> None:
    script = script_of(rig, f"import os, tempfile\nVALUE = tempfile.mkdtemp(dir={where})\nos.getcwd()\n")
    rig.start(script)
    assert b"mod makes the temporary" in said(rig, script)


def test_a_directory_for_temporary_files_is_made_anew(rig: "Rig") -> None:
    """The next directory is made in it; a function that fails at the end shows no frame of ours."""
    text = (
        "import atexit, os, tempfile\ntempfile.tempdir = VALUE = tempfile.mkdtemp(prefix='made-')\n"
        "def leave(path): os.rmdir(path)\natexit.register(leave, VALUE)\n"
    )
    script_of(rig, text)
    script = rig.script(
        "who",
        "import os, sys, mod\nassert os.path.dirname(mod.tempfile.mkdtemp()) == mod.VALUE\n"
        "print('_unsnarl_warm' in sys.modules)\n",
    )
    rig.env["TMPDIR"] = str(rig.directory)
    rig.start(script)
    for _ in range(2):
        done = rig.served(script)
        assert done.stdout == b"True\n"
        assert b"not empty" in done.stderr
        assert b"unsnarl" not in done.stderr, done.stderr.decode()
    # A process that runs nothing, such as a worker whose client has given up, removes its own at its end.
    until(lambda: len(made_in(rig)) == 2)


def test_a_temporary_file_is_of_one_run(rig: "Rig") -> None:
    text = f"import os, tempfile\nfd, VALUE = tempfile.mkstemp(dir={str(rig.directory)!r})\nos.close(fd)\n"
    script = script_of(rig, text)
    rig.start(script)
    assert b"mod makes the temporary" in said(rig, script)
    script_of(rig, text + "os.unlink(VALUE)\nVALUE = 0\n")
    rig.start(script)
    assert rig.served(script).stdout == b"0 warm\n"


def test_what_only_some_runs_load_does_not_rule_the_command_out(rig: "Rig") -> None:
    (rig.directory / "bin" / "loud.py").write_text("import os\nos.write(1, b'loud\\n')\n")
    script_of(rig, "VALUE = 1\n")
    text = "import sys, mod\nif sys.argv[1:]: __import__(sys.argv[1])\nprint('_unsnarl_warm' in sys.modules)\n"
    script = rig.script("some", text)
    rig.start(script)
    assert rig.served(script, "loud").stdout == b"loud\nTrue\n"
    until(lambda: b"loud is not imported ahead: loud prints" in said(rig, script))
    rig.start(script)
    assert rig.served(script).stdout == b"True\n"


def test_no_seed_is_as_good_as_an_empty_one(rig: "Rig") -> None:
    rig.env["PYTHONHASHSEED"] = ""
    script = script_of(rig, "ORDER = '|'.join({'a', 'b', 'c', 'd', 'e'})\nVALUE = 1\n")
    rig.start(script)
    assert rig.served(script).stdout == b"1 warm\n"


def test_years_among_others_are_no_date(rig: "Rig") -> None:
    year = dt.datetime.now(dt.UTC).year
    script = script_of(
        rig, f"VERSION = tuple(map(int, '{year}.4'.split('.')))\nYEARS = list(range(1970, 2100))\nVALUE = 1\n"
    )
    rig.start(script)
    assert rig.served(script).stdout == b"1 warm\n"


def test_random_digits_in_other_circumstances(rig: "Rig") -> None:
    """Workers of a server for other settings renew them as well, or keep them if they are not random there."""
    text = "import os, uuid\nMODE = os.environ.get('MODE')\nVALUE = os.environ.get('GIVEN') or uuid.uuid4().hex\n"
    script = script_of(rig, text)
    rig.start(script)
    rig.env["MODE"] = "another"
    rig.start(script)
    one, other = (rig.served(script).stdout for _ in range(2))
    assert one != other
    rig.env["GIVEN"] = "0123456789abcdef"
    rig.start(script)
    assert rig.served(script).stdout == b"0123456789abcdef warm\n"


def test_constants_of_today_are_constants(rig: "Rig") -> None:
    today = dt.datetime.now(dt.UTC).date()
    text = (
        f"__version__ = VALUE = '{today:%Y.%m.%d}'\nERROR = {today.year}\n"
        "ORDER = '|'.join({'a', 'b', 'c'})\nWHERE = repr(object())\nKEY = id(WHERE)\n"
    )
    script = script_of(rig, text)
    rig.start(script)
    assert rig.served(script).stdout == f"{today:%Y.%m.%d} warm\n".encode()


def test_nobody_is_told_of_the_seed(rig: "Rig") -> None:
    script = script_of(rig, "import os\nVALUE = os.environ.get('PYTHONHASHSEED')\n")
    rig.start(script)
    assert rig.served(script).stdout == b"None warm\n"


def test_what_startup_files_read_belongs_to_the_key(rig: "Rig") -> None:
    (rig.directory / "bin" / "sitecustomize.py").write_text(
        "import builtins, os\nbuiltins.MEASURED = os.environ.get('MEASURE')\n"
    )
    script = script_of(rig, "VALUE = MEASURED\n")
    rig.env["PYTHONPATH"] = str(rig.directory / "bin")
    for env, expected in ((rig.env, b"None warm\n"), (rig.env | {"MEASURE": "1"}, b"1 warm\n")):
        rig.start(script, env=env)
        assert rig.served(script, env=env).stdout == expected
    assert b"MEASURE" in said(rig, script)


def test_a_startup_file_is_watched(rig: "Rig") -> None:
    startup = rig.directory / "bin" / "sitecustomize.py"
    startup.write_text("import builtins\nbuiltins.NUMBER = 1\n")
    script = script_of(rig, "VALUE = NUMBER\n")
    rig.env["PYTHONPATH"] = str(rig.directory / "bin")
    rig.start(script)
    assert rig.served(script).stdout == b"1 warm\n"
    startup.write_text("import builtins\nbuiltins.NUMBER = 22\n")
    assert rig.warm(script).stdout == b"22 plain\n"


def test_a_variable_that_imports_set_is_the_same_for_all(rig: "Rig") -> None:
    script = rig.script("setter", "import os, sys, mod\nprint(os.environ['MODE'], '_unsnarl_warm' in sys.modules)\n")
    (rig.directory / "bin" / "mod.py").write_text("import os\nos.environ['MODE'] = '1'\n")
    for env in (rig.env | {"MODE": "1"}, rig.env, rig.env | {"MODE": "2"}):
        rig.start(script, env=env)
        assert rig.served(script, env=env).stdout == b"1 True\n"


@pytest.mark.parametrize("name", ["os.fsencode(PATH)", "__import__('pathlib').Path(PATH)"])
def test_a_file_opened_by_another_kind_of_name_is_watched(rig: "Rig", name: str) -> None:
    data = rig.directory / "data.txt"
    data.write_text("one")
    read = f"fd = os.open({name}, 0)\nVALUE = os.read(fd, 9).decode()\nos.close(fd)\n"
    script = script_of(rig, f"import os\nPATH = {str(data)!r}\n{read}")
    rig.start(script)
    assert rig.served(script).stdout == b"one warm\n"
    data.write_text("three")
    assert rig.warm(script).stdout == b"three plain\n"


def test_a_mended_module_ends_a_plain_verdict(rig: "Rig") -> None:
    script = script_of(rig, "import helper\nVALUE = 1\n")
    helper = rig.directory / "bin" / "helper.py"
    helper.write_text("kept = open(__file__)\n")
    assert rig.verb("start", "--", script).returncode == 1
    helper.write_text("kept = None\n")
    rig.warm(script)  # which has it learned again
    until(lambda: rig.served(script).stdout == b"1 warm\n")


def test_start_looks_again_at_what_was_found_to_run_plainly(rig: "Rig") -> None:
    switch = rig.directory / "switch"
    script = script_of(rig, f"import os\nVALUE = 1\nif not os.path.exists({str(switch)!r}):\n    os.getppid()\n")
    assert rig.verb("start", "--", script).returncode == 1
    switch.write_text("")
    assert rig.verb("start", "--", script).returncode == 0
    assert rig.served(script).stdout == b"1 warm\n"


@pytest.mark.parametrize("what", ["os._exit(3)", "os.getppid()"])
def test_a_plain_verdict_is_looked_into_again_some_day(rig: "Rig", what: str) -> None:
    switch = rig.directory / "switch"
    text = f"import os, signal\nVALUE = 1\nif not os.path.exists({str(switch)!r}):\n    {what}\n"
    script = script_of(rig, text)
    assert rig.verb("start", "--", script).returncode == 1
    (record,) = rig.house.glob("*.rec")
    assert re.search(r"^until \d+$", record.read_text(), re.MULTILINE)
    switch.write_text("")
    record.write_text(re.sub(r"until \d+", "until 1", record.read_text()))
    rig.warm(script)
    until(lambda: rig.served(script).stdout == b"1 warm\n")


def test_the_log_of_a_module_is_found_by_its_name(rig: "Rig") -> None:
    command = (sys.executable, "-m", "json.tool", "--help")
    rig.start(*command)
    rig.verb("stop")
    assert b"json.tool: ends" in rig.verb("logs", "json.tool").stdout
    unknown = rig.verb("logs", "json")
    assert (unknown.stdout, unknown.stderr) == (b"", b"there are no messages about json\n")


def test_a_status_above_a_hundred_is_not_logged(rig: "Rig") -> None:
    script = rig.script("fails", "import sys\nsys.exit(255)\n")
    rig.start(script)
    assert rig.served(script).returncode == 255
    rig.verb("stop")
    assert "255" not in rig.log()


def test_a_shim_that_cannot_be_written_is_an_error_of_one_line(rig: "Rig") -> None:
    script = rig.script("who", "")
    (rig.directory / "data").write_text("a file where a directory is to be")
    done = rig.verb("enable", script)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("kind", "is_local"), [("ext4", True), ("overlay", True), ("fuse", False), ("gpfs", False), ("fakeowner", False)]
)
def test_only_known_file_systems_are_trusted_to_tell(tmp_path: Path, kind: str, is_local: bool) -> None:
    place = tmp_path / "with blank"
    place.mkdir()
    mounts = [("/", "gpfs"), (f"{tmp_path}/", kind), (f"{tmp_path}/other/", "nfs")]
    assert file_watch._is_local(str(place), mounts) == is_local
    assert not file_watch._is_local(str(place), [])
    assert file_watch._is_local(str(place), [("/elsewhere/", "proc")]), "a chroot: its root's own mount is not listed"


def test_mounts_are_read_with_their_blanks() -> None:
    assert file_watch._unescaped("/a\\040b") == "/a b"
    assert ("/proc/", "proc") in file_watch._mounts()
