"""However the recorder ends, the attached process continues, and every script that it has to run exists."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from unsnarl.trace.running import attach
from unsnarl.trace.traced import recording


class Process:
    """Stands in for a process: collects the scripts that it is sent, and runs none of them."""

    def __init__(self, pid: int, directory: Path) -> None:
        self.pid = pid
        self.directory = directory
        self.scripts: list[str] = []
        self.records = True

    def execute(self, pid: int, path: str) -> None:
        assert pid == self.pid
        assert os.path.exists(path)
        self.scripts.append(os.path.basename(path))
        if path.endswith("begin.py") and self.records:
            (self.directory / f"1{recording.SUFFIX}").touch()
        if path.endswith("detachment.py"):
            (self.directory / recording.DETACHED).touch()


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Process]:
    # A child of this process: in a container, the parent can be in another pid namespace and have no pid here.
    command = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as child:
        found = Process(child.pid, tmp_path)
        monkeypatch.setattr(sys, "remote_exec", found.execute, raising=False)
        monkeypatch.setattr(attach, "TIMEOUT_S", 0.1)
        yield found


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_recording_is_begun_and_ended(process: Process) -> None:
    attach.record(process.pid, process.directory, 0.01, 8)
    assert process.scripts == ["begin.py", "detachment.py"]


def test_an_interrupt_ends_the_recording_and_keeps_it(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "_sleep", interrupt)
    attach.record(process.pid, process.directory, 60, 8)
    assert process.scripts == ["begin.py", "detachment.py"]


def test_an_interrupt_before_the_beginning_withdraws_it(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attach, "_wait", interrupt)
    process.records = False
    with pytest.raises(KeyboardInterrupt):
        attach.record(process.pid, process.directory, 60, 8)
    assert process.scripts == ["begin.py", "null"]


def test_what_does_not_begin_in_time_is_withdrawn(process: Process) -> None:
    process.records = False
    with pytest.raises(attach.NotAttachable, match="did not start to record"):
        attach.record(process.pid, process.directory, 60, 8)
    assert process.scripts == ["begin.py", "null"]


def test_the_end_of_the_process_is_no_failure(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(pid: int, path: str) -> None:
        if path.endswith("detachment.py"):
            raise ProcessLookupError
        process.execute(pid, path)

    monkeypatch.setattr(sys, "remote_exec", gone, raising=False)
    attach.record(process.pid, process.directory, 0.01, 8)
    assert process.scripts == ["begin.py"]
