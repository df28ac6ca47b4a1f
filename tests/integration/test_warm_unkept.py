"""State of imports that workers cannot inherit: it is left to the runs, or the command runs plainly; `why` says so."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

LAST = (
    "import os\ndef last():\n    for name in os.environ:\n        if name.startswith('Q_'):\n            pass\n"
    "    return 'x' + name\nVALUE = last()"
)
COUNT = (
    "import os\ndef count():\n    others = 0\n    for name in os.environ:\n        if name.startswith('Q_'):\n"
    "            pass\n        else:\n            others += 1\n    return others\nVALUE = count()"
)
FAILS = (
    "import os\nFOUND = [name for name in os.environ if name.startswith('PA')]\n"
    "if any(type(name) is not str for name in FOUND):\n    raise TypeError(FOUND)"
)
THREAD = (
    "import threading\nseen = []\nthread = threading.Thread(target=seen.append, args=(1,))\nthread.start()\n"
    "thread.join()\nVALUE = seen"
)
UNKEPT = {
    "shares memory": ("import mmap; shared = mmap.mmap(-1, 8)", b"changes what memory it shares"),
    "has a lock": ("import multiprocessing; lock = multiprocessing.Lock()", b"changes what memory it shares"),
    "a default": ("import time\ndef f(at=time.time()): return at", b"keeps the time"),
    "a default by name": ("import time\ndef f(*, at=time.time_ns()): return at", b"keeps the time"),
    "a closure": ("import time\ndef make(at): return lambda: at\nf = make(time.monotonic())", b"keeps the time"),
    "a partial": ("import time, functools\nf = functools.partial(max, time.time())", b"keeps the time"),
    "a nested list": ("import time\nd = {'a': {'b': [int(time.time())]}}", b"keeps the time"),
    "the parent": ("import os\nparent = os.getppid()", b"asks for the parent process"),
    "the group": ("import os\ngroup = os.getpgrp()", b"asks for the process group"),
    "its own environment": ("VALUE = open('/proc/self/environ').read()", b"reads the whole environment"),
    "another directory": ("import os; os.chdir('/')", b"changes the working directory"),
}
LEFT = {
    "an attribute": ("import time\nclass C: pass\nc = C()\nc.at = time.time()", b"keeps the time"),
    "a struct": ("import time\nat = time.gmtime()", b"keeps the time"),
    "a date of a class": ("import datetime\nclass C: at = datetime.datetime.now()", b"keeps the time"),
    "seeds": ("import random; random.seed(42)", b"seeds the generator"),
    "takes a state": ("import random; random.setstate(random.Random(1).getstate())", b"seeds the generator"),
    "a line": ("import sys; VALUE = sys.stdin.readline()", b"reads the standard input"),
    "lines": ("import sys; VALUE = list(sys.stdin)", b"reads the standard input"),
    "bytes": ("import sys; VALUE = sys.stdin.buffer.read()", b"reads the standard input"),
    "by number": ("import os; VALUE = os.read(0, 100)", b"reads the standard input"),
    "by name": ("VALUE = open('/dev/stdin').read()", b"reads the standard input"),
    "a deprecation": (
        "import warnings; warnings.warn('old', DeprecationWarning, stacklevel=2)",
        b"prints while it is imported",
    ),
    "all names": ("import os; VALUE = list(os.environ)", b"reads the whole environment"),
    "all values": ("import os; VALUE = sum(map(len, os.environ.values()))", b"reads the whole environment"),
    "a name by its end": (
        "import os; VALUE = [name for name in os.environ if name.endswith('_PROXY')]",
        b"reads the whole environment",
    ),
    "names by a pattern": (
        "import os, re; VALUE = [name for name in os.environ if re.match('Q_', name)]",
        b"reads the whole environment",
    ),
    "other values": (
        "import os\nVALUE = [name.startswith('Q_') or value == '1' for name, value in os.environ.items()]",
        b"reads the whole environment",
    ),
    **{
        f"names without a beginning: {text}": (f"import os\nVALUE = {text}", b"reads the whole environment")
        for text in (
            "[n for n in os.environ if not n.startswith('Q_')]",
            "[(k, v) for k, v in os.environ.items() if not k.startswith('Q_')]",
            "tuple(n for n in os.environ if not n.startswith('Q_'))",
            "list(filter(lambda n: not n.startswith('Q_'), os.environ))",
            "' '.join(n for n in os.environ if not n.startswith('Q_'))",
            "['x=' + v for k, v in os.environ.items() if k.startswith('Q_') or v]",
            "sum(not n.startswith('Q_') for n in os.environ)",
            "[n.startswith('Q_') for n in os.environ]",
            "[at for at, n in enumerate(os.environ) if n.startswith('Q_')]",
            "max((n.startswith('Q_'), n) for n in os.environ)",
        )
    },
    "the last name of a loop": (
        "import os\nfor VALUE in os.environ:\n    if VALUE.startswith('Q_'):\n        FOUND = VALUE",
        b"reads the whole environment",
    ),
    "the last name of a function's loop": (LAST, b"reads the whole environment"),
    "what names without a beginning lead to": (COUNT, b"reads the whole environment"),
    "an import that fails by the names it is given": (FAILS, b"reads the whole environment"),
    "a walk for later": (
        "import os\nWALK = (name for name in os.environ if name.startswith('PAT'))\nVALUE = next(WALK)",
        b"reads the whole environment",
    ),
    "the names of a session": (
        "import os; VALUE = [name for name in os.environ if name.startswith('SSH_')]",
        b"reads the whole environment",
    ),
    "a question": ("VALUE = input()", b"reads the standard input"),
    "the first environment": ("import posix; VALUE = sorted(posix.environ)", b"reads the whole environment"),
    "the kind of a stream": ("import os; VALUE = os.fstat(0).st_mode", b"asks for the kind of a standard stream"),
    "a word": ("print('a word')", b"mod prints while it is imported"),
    "bytes by number": ("import os; os.write(1, b'bytes')", b"mod prints while it is imported"),
    "several bytes": ("import os; os.writev(1, [b'by', b'tes'])", b"mod prints while it is imported"),
    "bytes that stay in a buffer": ("import sys; sys.stdout.buffer.write(b'bytes')", b"prints while it is imported"),
    "a complaint": ("import sys; sys.stderr.write('a word')", b"mod prints while it is imported"),
    "a secret": ("import os; VALUE = len(os.urandom(9)); SECRET = str(os.urandom(9))", b"mod.SECRET differs"),
    "a year": ("import datetime; YEAR = datetime.date.today().year", b"mod.YEAR is made of the time of its import"),
    "a thread": (THREAD, b"starts a thread"),
    "a file": ("import os; VALUE = open(os.environ['MADE'], 'a').write('x')", b"writes a file"),
    "a program": ("import subprocess; VALUE = subprocess.check_output(['echo', 'word'])", b"runs a program"),
}


def is_known(rig: Rig, script: str) -> bool:
    """Return whether a command has been learned."""
    return b"runs" in rig.verb("why", script).stdout


@pytest.mark.parametrize("name", UNKEPT)
def test_what_a_worker_would_not_have_is_done_plainly(rig: Rig, name: str) -> None:
    text, reason = UNKEPT[name]
    (rig.directory / "bin" / "mod.py").write_text(text + "\n")
    script = rig.script("who", "import sys, mod\nprint(getattr(mod, 'VALUE', 0))\n")
    assert rig.verb("start", "--", script).returncode == 1
    assert reason in rig.verb("why", script).stdout
    assert rig.warm(script, input=b"hello\n").stdout == rig.plain(script, input=b"hello\n").stdout


@pytest.mark.parametrize("name", LEFT)
def test_what_only_a_run_may_import_is_left_to_the_runs(rig: Rig, name: str) -> None:
    text, reason = LEFT[name]
    (rig.directory / "bin" / "mod.py").write_text(text + "\n")
    text = "import sys, mod, after\nsys.stdout.flush()\n'_unsnarl_warm' in sys.modules and sys.stderr.write('warm')\n"
    (rig.directory / "bin" / "after.py").write_text("")
    script = rig.script("who", text + "print(getattr(mod, 'VALUE', 0), sys.stdin.readline())\n")
    rig.env["MADE"] = str(rig.directory / "made")
    rig.start(script)
    said = rig.verb("why", script).stdout
    assert b"mod is not imported ahead: " in said
    assert reason in said
    assert b"after is not imported ahead: each run imports mod before it" in said
    plain = rig.plain(script, input=b"hello\nyou\n")
    for count in (2, 3):
        served = rig.served(script, input=b"hello\nyou\n")
        assert (served.stdout, served.stderr) == (plain.stdout, plain.stderr + b"warm")
        assert name != "a file" or (rig.directory / "made").read_text() == "x" * count


def test_constants_and_other_times_are_no_time_of_the_import(rig: Rig) -> None:
    text = "import os, time, datetime\ndef f(at=float(int(time.monotonic())), *, born=datetime.datetime(2001, 2, 3)):\n"
    text += "    return at, born, start\nstart = {'a': [time.time() - 86400 * 3]}\nthen = time.gmtime(1)\n"
    (rig.directory / "bin" / "mod.py").write_text(text)
    script = rig.script("who", "import sys, mod\nprint('_unsnarl_warm' in sys.modules)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True\n"


def test_a_deprecation_that_plain_runs_do_not_show_rules_nothing_out(rig: Rig) -> None:
    (rig.directory / "bin" / "old.py").write_text(
        "import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=2)\n"
    )
    (rig.directory / "bin" / "mod.py").write_text("import old\n")
    script = rig.script("who", "import sys, mod\nprint('_unsnarl_warm' in sys.modules)\n")
    rig.start(script)
    assert (rig.plain(script).stderr, rig.served(script).stderr, rig.served(script).stdout) == (b"", b"", b"True\n")


def test_the_main_thread_has_its_own_number(rig: Rig) -> None:
    text = "import sys, threading\nprint(threading.main_thread().native_id == threading.get_native_id())\n"
    script = rig.script("who", text)
    rig.start(script)
    assert rig.served(script).stdout == b"True\n"


def test_what_is_registered_for_forks_is_told_of_the_commands_own(rig: Rig) -> None:
    text = "import os\nseen = []\nos.register_at_fork(before=lambda: seen.append('before'),\n"
    text += "    after_in_parent=lambda: seen.append('parent'), after_in_child=lambda: seen.append('child'))\n"
    (rig.directory / "bin" / "mod.py").write_text(text)
    text = "import os, sys, mod\nprint(mod.seen, '_unsnarl_warm' in sys.modules, flush=True)\npid = os.fork()\n"
    script = rig.script("who", text + "if pid: os.waitpid(pid, 0)\nprint(mod.seen, flush=True)\n")
    rig.start(script)
    assert rig.served(script).stdout == rig.plain(script).stdout.replace(b"False", b"True")
    assert rig.served(script).stdout == b"[] True\n['before', 'child']\n['before', 'parent']\n"


def test_numbers_that_are_drawn_while_importing_are_no_seed(rig: Rig) -> None:
    (rig.directory / "bin" / "mod.py").write_text("import random\nrandom.seed()\nrandom.random()\n")
    script = rig.script("who", "import sys, mod\nprint('_unsnarl_warm' in sys.modules)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True\n"


def test_what_is_printed_is_not_kept(rig: Rig) -> None:
    """The output may be a secret, and facts are stored in files."""
    secret = "very-secret"
    rig.env |= {"TOKEN": secret}
    words = {"prints": "print(os.environ['TOKEN'])\n", "fails": "raise ValueError(os.environ['TOKEN'])\n"}
    for name, text in words.items():
        (rig.directory / "bin" / f"{name}.py").write_text(f"import os\n{text}")
        script = rig.script(f"that-{name}", f"import {name}\n")
        rig.warm(script)
        until(partial(is_known, rig, script))
        assert secret not in rig.verb("why", script).stdout.decode()
    for path in rig.house.iterdir():
        if path.suffix in (".facts", ".rec", ".log", ".own"):
            assert secret not in path.read_text()


def test_what_ends_a_learning_run_is_named_by_its_kind(rig: Rig) -> None:
    secret = "very-secret"
    rig.env |= {"TOKEN": secret}
    text = "import builtins, os\ndef refuse(*words): raise ValueError(os.environ['TOKEN'])\nbuiltins.sorted = refuse\n"
    (rig.directory / "bin" / "mod.py").write_text(text)
    script = rig.script("who", "import mod\n")
    assert rig.verb("start", "--", script).returncode == 1
    said = rig.verb("why", script).stdout.decode()
    assert "its imports could not be watched: ValueError" in said
    assert secret not in said
