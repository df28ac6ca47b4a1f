"""With any names of threads, the recording ends regularly and nothing is added to the program's stderr."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integration.trace_programs import needs_hooks, trace

if TYPE_CHECKING:
    from tests.conftest import Programs


@pytest.fixture(autouse=True)
def hooked() -> None:
    needs_hooks()


NAMES = """\
import os, threading
class Nameless(threading.Thread):
    @property
    def name(self):
        raise RuntimeError("no name")
gate = threading.Event()
threads = [
    threading.Thread(target=gate.wait, name=os.fsdecode(b"\\xff"), daemon=True),
    Nameless(target=gate.wait, daemon=True),
    threading.Thread(target=gate.wait, name="plain", daemon=True),
]
for thread in threads:
    thread.start()
"""


def test_names_that_cannot_be_written(programs: Programs) -> None:
    traced = trace(programs, NAMES)
    assert "Traceback" not in traced.outcome.complaint
    [process] = traced.processes
    assert process["is_complete"]
    assert {"?", "plain"} <= {thread["name"] for thread in process["threads"]}


def test_an_enumerate_of_the_programs_own(programs: Programs) -> None:
    traced = trace(programs, "import threading\ndef enumerate(): raise OSError\nthreading.enumerate = enumerate\n")
    assert "Traceback" not in traced.outcome.complaint
    assert traced.processes[0]["is_complete"]


SETTINGS = """\
import os
from unsnarl import _native
from unsnarl.run_settings import RunSettings
from unsnarl.trace.traced import recording
def settings(name):
    os.mkdir(name)
    return RunSettings(trace=os.path.abspath(name), trace_chunks=64, children=False)
"""

ATTACHED = """\
recording.attach(settings("first"))
def fail(*_):
    raise ValueError("whatever it is")
naming, recording._name_threads = recording._name_threads, fail
try:
    recording.detach()
except ValueError:
    print("failed", os.listdir("first").count("done"), _native.trace_is_on())
recording._name_threads = naming
recording.attach(settings("second"))
print(_native.trace_is_on())
recording.detach()
print(_native.trace_is_on(), os.listdir("second").count("done"))
"""


def test_a_process_whose_recording_ended_badly_can_be_attached_to_again(programs: Programs) -> None:
    programs.write("app.py", NAMES + SETTINGS + ATTACHED)
    outcome = programs.python("app.py")
    assert outcome.status == 0, outcome.complaint
    assert outcome.stdout.decode().splitlines() == ["failed 1 False", "True", "False 1"]


NESTED = """\
import _frozen_importlib
find_and_load = _frozen_importlib._find_and_load
naming = recording._name_threads
def name_and_detach():
    recording._name_threads = naming
    recording.detach()
recording._name_threads = name_and_detach
recording.attach(settings("nested"))
print(os.listdir("nested").count("done"), _native.trace_is_on(), _frozen_importlib._find_and_load is find_and_load)
recording.attach(settings("next"))
print(_native.trace_is_on())
recording.detach()
"""


def test_a_tracer_that_gives_up_while_the_recording_begins(programs: Programs) -> None:
    """The script that ends the recording can interrupt the script that starts it."""
    programs.write("app.py", SETTINGS + NESTED)
    outcome = programs.python("app.py")
    assert outcome.status == 0, outcome.complaint
    assert outcome.stdout.decode().splitlines() == ["1 False True", "True"]
