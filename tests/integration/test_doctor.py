"""``unsnarl doctor`` measures, names the cause, and reports if nothing helps."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import PYTHON, UNSNARL
from tests.integration.test_trace_causes import CONVOY
from tests.integration.trace_programs import needs_hooks
from tests.integration.waiting import WATCHDOG_S, until, until_gone
from unsnarl.doctor import warmth
from unsnarl.doctor.diagnosis import Examination

if TYPE_CHECKING:
    from tests.conftest import Programs
    from tests.integration.conftest import Rig


@pytest.fixture(autouse=True)
def hooked() -> None:
    needs_hooks()


def test_a_convoy_is_found_and_each_remedy_tried(programs: Programs) -> None:
    programs.write("app.py", CONVOY)
    outcome = programs.unsnarl("doctor", "--runs", "2", "--seconds", "0", "--json", "app.py")
    assert outcome.status == 0, outcome.complaint
    document = json.loads(outcome.stdout)
    assert [way["name"] for way in document["outcomes"]][:3] == ["stock", "scheduler", "native primitives"]
    assert all(way["runs"] == 2 for way in document["outcomes"])
    assert "convoy" in {finding["kind"] for finding in document["findings"]}
    # The effect of the scheduler is measured, and a busy machine creates waits by itself.
    assert all(effect["before_ns"] > 0 for effect in document["effects"])
    assert document["imports"]
    assert document["syscalls"]["rows"] or document["syscalls"]["reason"]


LOCK_OF_A_FILE = (Path(__file__).parents[1] / "causes" / "lock_of_a_file.py").read_text()


def test_the_traced_run_is_sampled_as_that_of_trace(programs: Programs) -> None:
    """Only the samples from outside tell what a call waits for."""
    programs.write("app.py", LOCK_OF_A_FILE)
    outcome = programs.unsnarl("doctor", "--runs", "2", "--seconds", "0", "--json", "app.py")
    findings = {finding["kind"]: finding for finding in json.loads(outcome.stdout)["findings"]}
    assert "waits for the lock of a file" in findings["shared-lock"]["title"]
    assert "waiting for the lock of a file in `append`" in findings["time"]["title"]
    assert "no-lock-contention" not in findings


def test_where_nothing_helps_it_says_so_and_why(programs: Programs) -> None:
    programs.write("app.py", "import time; time.sleep(0.05); print('thrown', 'away')")
    outcome = programs.unsnarl("doctor", "--runs", "2", "--seconds", "0", "app.py")
    assert outcome.status == 0, outcome.complaint
    shown = " ".join(outcome.stdout.decode().split())
    assert "thrown away" not in shown
    assert "median" in shown
    # Two runs decide nothing; the reason stands with the finding.
    assert "Too few runs to judge" in shown
    assert "scheduler will not help here: threads hardly wait for the GIL" in shown


def test_a_server_that_is_just_being_replaced_breaks_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The client reports once that no server took the command: it has not run, and the next run counts."""
    client = tmp_path / "client"
    client.write_text(f"#!/bin/sh\nmkdir '{tmp_path}/first' 2>/dev/null && exit {warmth.NOT_WARM}\nexit 0\n")
    client.chmod(0o755)

    def server(*_: object) -> contextlib.nullcontext[list[str]]:
        return contextlib.nullcontext([str(client)])

    monkeypatch.setattr(warmth, "server", server)
    examination = Examination(["-c", "pass"], ["command"], os.environ, 60, lambda _: None)
    (warm,) = (outcome for outcome in examination.diagnose(3, 60).outcomes if outcome.name == "warm")
    assert (warm.runs, warm.failure) == (2, "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import time; time.sleep(60)", "did not end within"),
        ("import os, sys; sys.exit(os.path.exists('x') or bool(open('x', 'w').close()))", "ended with status"),
    ],
)
def test_a_command_that_cannot_be_compared_is_refused(programs: Programs, text: str, said: str) -> None:
    programs.write("app.py", text)
    outcome = programs.unsnarl("doctor", "--runs", "2", "--limit", "2" if "sleep" in text else "60", "app.py")
    assert outcome.status == 1
    assert said in outcome.complaint
    assert outcome.complaint.splitlines()[-1].startswith("hint: ")


def test_a_remedy_that_breaks_the_command_is_advised_against(programs: Programs) -> None:
    """The other ways are tried nevertheless."""
    programs.write("app.py", "import queue, sys; sys.exit(0 if queue.Queue.__base__ is object else 4)")
    outcome = programs.unsnarl("doctor", "--runs", "2", "--seconds", "0", "--json", "app.py")
    assert outcome.status == 0, outcome.complaint
    document = json.loads(outcome.stdout)
    verdicts = {way["name"]: (way["verdict"], way["failure"], way["runs"]) for way in document["outcomes"]}
    assert verdicts["native primitives"] == ("failed", "with status 4", 1)
    assert verdicts["scheduler"][1:] == ("", 2)
    assert any("native primitives breaks the command" in line for line in document["verdict"])


SAYS_HOW = """
import json, sys
finder = "pack" if type(json.__loader__).__name__ == "PackLoader" else "path"
with open("log", "a") as log:
    log.write(f"{finder} {sys.argv[1:]}\\n")
"""


@pytest.mark.parametrize("is_module", [True, False])
def test_a_cold_start_is_tried_with_a_pack(programs: Programs, is_module: bool) -> None:
    script = programs.write("tool.py", f"#!{PYTHON}\n{SAYS_HOW}")
    script.chmod(0o755)
    words = ["-m", "tool", "a b"] if is_module else [str(script), "a b"]
    house = str(programs.directory / "house")
    outcome = programs.unsnarl(
        "doctor", "--runs", "2", "--seconds", "0", "--json", *words, env={"UNSNARL_WARM_DIR": house}
    )
    assert outcome.status == 0, outcome.complaint
    document = json.loads(outcome.stdout)
    ways = {way["name"]: way for way in document["outcomes"]}
    assert (ways["pack"]["runs"], ways["pack"]["failure"]) == (2, ""), document["pack"]
    assert document["pack"]["reason"] == ""
    # The saving is reported; its amount on this machine is not checked.
    assert {"saves_ns", "finding_ns", "collecting_ns", "ending_ns"} < document["pack"].keys()
    log = (programs.directory / "log").read_text().splitlines()
    assert log.count("pack ['a b']") == 2
    assert set(log) == {"pack ['a b']", "path ['a b']"}
    assert ways["pack"]["what"].startswith("unsnarl pack -m tool " if is_module else "unsnarl pack tool.py ")
    assert sorted(path.name for path in programs.directory.iterdir() if "pack" in path.name) == []


def test_what_has_no_pack_says_why(programs: Programs) -> None:
    programs.write("app.py", "")
    outcome = programs.unsnarl("doctor", "--runs", "2", "--seconds", "0", "--json", "app.py")
    assert outcome.status == 0, outcome.complaint
    document = json.loads(outcome.stdout)
    assert "pack" not in {way["name"] for way in document["outcomes"]}
    assert "console script" in document["pack"]["reason"]


def test_a_status_of_its_own_is_no_failure(programs: Programs) -> None:
    programs.write("app.py", "import sys; sys.exit(3)")
    outcome = programs.unsnarl("doctor", "--runs", "2", "--seconds", "0", "app.py")
    assert outcome.status == 0, outcome.complaint
    assert "(status 3)" in outcome.stdout.decode()


def test_switched_off_there_is_nothing_to_compare(programs: Programs) -> None:
    outcome = programs.unsnarl("doctor", "-c", "", env={"UNSNARL": "off"})
    assert outcome.status == 1
    assert "UNSNARL=off" in outcome.complaint


STAYS_WHEN_ASKED = """
import os, signal
if os.path.exists("stay"):
    with open("staying", "w") as note:
        note.write(f"{os.getpid()}\\n")
    while True:
        signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_all_that_was_started(rig: Rig, number: signal.Signals) -> None:
    """The server, the running command, and the directories."""
    script = rig.script("stays", STAYS_WHEN_ASKED)
    scratch, work = rig.directory / "scratch", rig.directory / "work"
    scratch.mkdir()
    with subprocess.Popen(
        [UNSNARL, "doctor", "--runs", "100", "--seconds", "86400", "--limit", "86400", script],
        cwd=work,
        env=rig.env | {"TMPDIR": str(scratch), "UNSNARL_WARM_IDLE": "3600"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        rig.processes.append(process)
        until(lambda: list(scratch.glob("unsnarl-doctor-*")) or process.poll() is not None)
        assert "stays" in rig.servers()[0]
        (work / "stay").touch()
        staying = work / "staying"
        until(lambda: (staying.exists() and staying.read_text().endswith("\n")) or process.poll() is not None)
        process.send_signal(number)
        _, complaint = process.communicate(timeout=WATCHDOG_S)
    assert (process.returncode, complaint) == (-number, b"")
    assert list(scratch.glob("unsnarl-doctor-*")) == []
    assert rig.servers() == []
    until_gone(int(staying.read_text()))
