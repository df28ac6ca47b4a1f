"""The bookkeeping of a server and its workers never shows in the behaviour of a command.

Invariant: after any damage to the runtime directory, of the disk, of the session or of the
server's own children, the command ends as it would have, and no process runs without end.
"""

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.conftest import UNSNARL
from tests.integration.test_warm_terminal import Terminal
from tests.integration.waiting import LISTEN, LISTENS, WATCHDOG_S, until, until_gone
from unsnarl.warm.worker import spare

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

AWAY = (
    "import os\nhouse = os.environ['UNSNARL_WARM_DIR']\nos.path.exists(house) and os.rename(house, house + '.away')\n"
)
LOADS = "import importlib, sys\nimportlib.import_module(sys.argv[1])\n"
"""Imports a module that was not learned, so that the run has news to note."""


def script_with_news(rig: "Rig", text: str) -> str:
    """Write a command that ends with an import of ``news``, and start its server."""
    (rig.directory / "bin" / "news.py").write_text("print('loaded')\n")
    script = rig.script("noted", text + LOADS)
    rig.start(script)
    return script


@pytest.mark.parametrize(
    "text",
    [
        AWAY,
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))\n",
        "import os\nos.umask(0o777)\n",
    ],
    ids=["directory gone", "no file may grow", "mask of nothing"],
)
def test_what_cannot_be_noted_is_not_the_commands_business(rig: "Rig", text: str) -> None:
    script = script_with_news(rig, text)
    outcome = rig.served(script, "news")
    assert (outcome.returncode, outcome.stdout, outcome.stderr) == (0, b"loaded\n", b"")


def test_notes_can_be_added_to_by_the_next_run_whatever_the_mask(rig: "Rig") -> None:
    script = script_with_news(rig, "import os\nos.umask(0o777)\n")
    rig.served(script, "news")
    (wanted,) = rig.house.glob("*.wanted")
    assert wanted.stat().st_mode & 0o777 == 0o600


def test_a_server_whose_directory_is_gone_tells_the_end_of_its_worker(rig: "Rig") -> None:
    script = rig.script("leaver", AWAY + f"{LISTENS}\nprint(os.getppid(), flush=True)\n{LISTEN}")
    rig.start(script)
    process = subprocess.Popen(
        [UNSNARL, "warm", "run", "--require", "--", script],
        env=rig.env,
        cwd=rig.directory / "work",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    rig.processes.append(process)
    assert process.stdout is not None
    server = int(process.stdout.readline())
    os.kill(server, signal.SIGTERM)  # it has to log that it ends, and to take its socket away
    process.send_signal(signal.SIGUSR1)
    assert process.wait(WATCHDOG_S) == -signal.SIGUSR1
    until_gone(server)


def test_a_server_without_its_session_waits_in_peace(rig: "Rig") -> None:
    terminal = Terminal(rig)
    try:
        text = f"import os, sys\n{LISTENS}signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        script = rig.script("stayer", text + f"print('up', os.getppid(), flush=True)\nwhile True: {LISTEN}")
        assert b"rc=0" in terminal.run(f"{UNSNARL} warm start -- {script}; echo rc=$?"), rig.log()
        terminal.type(f"nohup {UNSNARL} warm run --require -- {script} < /dev/null > out & \n")
        out = rig.directory / "work" / "out"
        until(lambda: out.exists() and b"up" in out.read_bytes())
        server = int(out.read_bytes().split()[1])
    finally:
        terminal.close()
    until(lambda: "its session has ended" in rig.log())
    stat = Path(f"/proc/{server}/stat")
    asleep: list[bool] = []

    def is_at_rest() -> bool:
        asleep.append(stat.read_text().rpartition(")")[2].split()[0] == "S")
        return len(asleep) >= 50 and all(asleep[-50:])

    until(is_at_rest)


def test_a_link_to_a_module_is_changed_where_it_leads(rig: "Rig") -> None:
    sources = rig.directory / "sources"
    sources.mkdir()
    (sources / "really.py").write_text("VALUE = 1\n")
    (rig.directory / "bin" / "linked.py").symlink_to(sources / "really.py")
    script = rig.script("reader", "import linked\nprint(linked.VALUE)\n")
    rig.start(script)
    assert rig.served(script).stdout == b"1\n"
    (sources / "really.py").write_text("VALUE = 22\n")
    assert rig.warm(script).stdout == b"22\n"


def test_a_directory_that_is_another_by_now_is_noticed(rig: "Rig") -> None:
    for number in (1, 2):
        release = rig.directory / f"release{number}"
        release.mkdir()
        (release / "part.py").write_text(f"VALUE = {number}\n")
    current = rig.directory / "current"
    current.symlink_to("release1")
    script = rig.script("reader", f"import sys\nsys.path.insert(0, {str(current)!r})\nimport part\nprint(part.VALUE)\n")
    env = rig.env | {"PYTHONPATH": str(current)}
    rig.start(script, env=env)
    assert rig.served(script, env=env).stdout == b"1\n"
    (rig.directory / "next").symlink_to("release2")
    os.replace(rig.directory / "next", current)
    assert rig.warm(script, env=env).stdout == b"2\n"
    # The server has noticed by now that it has no clients left.
    until(lambda: "a loaded file has changed" in rig.log())
    rig.start(script, env=env)
    assert rig.served(script, env=env).stdout == b"2\n"


def test_an_interrupted_wait_for_threads_ends_the_same(rig: "Rig") -> None:
    text = (
        "import os, signal, sys, threading\n"
        "def interrupt():\n"
        "    threading.main_thread().join()\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt).start()\n"
    )
    script = rig.script("waiter", text)
    rig.start(script)
    plain, warm = rig.plain(script), rig.served(script)
    assert (warm.returncode, warm.stdout) == (plain.returncode, plain.stdout)
    # Each version reports an ignored exception in its own words.
    told, expected = (
        [line for line in run.stderr.splitlines() if not line.startswith(b"Exception ignored")] for run in (warm, plain)
    )
    assert told == expected


def test_a_doubt_that_comes_between_two_looks_is_seen() -> None:
    """The server first reports its doubt, then reads the event: a check in between must find one of the two."""
    doubt_in, doubt_out = os.pipe()

    class Events:
        def is_in_doubt(self) -> bool:
            # As the server does between the spare's two looks.
            os.write(doubt_out, b"?")
            return False

    class Scene:
        files = Events()

        def __init__(self, doubt: int) -> None:
            self.doubt = doubt

    try:
        scene: Any = Scene(doubt_in)
        assert spare.Spare(scene)._is_in_doubt()
    finally:
        os.close(doubt_in)
        os.close(doubt_out)
