"""The views write formats that other tools read, with any names of threads and files."""

import io
import itertools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from unsnarl.trace import model, report
from unsnarl.trace.syscalls import Syscalls
from unsnarl.trace.views import chrome, collapsed, data, html, terminal

EVIL = '</script><script>alert(1)</script>;"\\ \n\x1b[31m<!--'


def process(name: str = "worker", **changes: object) -> model.Process:
    """Return a process of two threads, one of which waits."""
    totals = {
        "running_ns": 5,
        "waiting_ns": 1,
        "on_lock_ns": 0,
        "asleep_ns": 0,
        "io_ns": 0,
        "computing_ns": 0,
        "takes": 2,
        "waits": 1,
    }
    counts = {"lock_waits": 0, "wakeups": 1, "longest_hold_ns": 5, "longest_wait_ns": 1, "forced_drops": 0}
    thread = {
        "ident": 1,
        "tid": 10,
        "name": name,
        "begin_ns": 0,
        "end_ns": 9_000_000,
        "has_ended": True,
        **totals,
        **counts,
    }
    base = {
        "pid": 7, "parent": 1, "started_ns": 1000, "started_real_ns": 0, "length_ns": 9_000_000, "is_complete": True,
        "is_scheduled": False, "is_counted": True, "overwritten": 0, "stacks_left_out": 0, "lost": 0,
        "executed_ns": 0, "first_line_ns": 0,
        "interval_ns": 5_000_000, "thread_count": 2, "text": f"cpython\x1f3.13\x1f/lib\x1fpython\x1f{name}",
        "resolution_ns": 0, "records_from_ns": 0, "start_until_ns": 9_000_000,
        "threads": [
            {**thread, "stretches": [[0, 5_000_000, 0, 1], [5_000_000, 4_000_000, 3, 0]]},
            {**thread, "tid": 11, "name": None, "stretches": [[0, 5_000_000, 1, 1]]},
        ],
        "contention": {"pairs": [], "long_holds": [], "wakeups": [], "histogram": [0] * 32},
        "locks": [],
        "imports": [{"name": name, "parent": None, "thread": 0, "begin_ns": 1, "total_ns": 2, "self_ns": 2}],
        "rates": {"bin_ns": 1000, "begin_ns": 0, "hand_overs": [1], "wakeups": [0], "lock_waits": [0]},
        "locations": {"1": [f"/app/{name}.py", "work", 3]},
        "nodes": {"1": [0, 1]},
        "stacks": [[0, 0, 1, 5_000_000]],
        "samples": 0,
        "peers": [],
        "sampled": [],
        **changes,
    }  # fmt: skip
    return model.from_json(json.dumps(base))


class Reader(HTMLParser):
    """Collects scripts and references to external resources."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.links: list[str] = []
        self._is_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_script = tag == "script"
        if self._is_script:
            self.scripts.append("")
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        if self._is_script:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._is_script = self._is_script and tag != "script"


@pytest.mark.parametrize("name", ["worker", EVIL, "@SCRIPT@ @DATA@"])
def test_the_page_is_one_file_and_its_data_is_data(name: str) -> None:
    made = report.make([process(name)])
    page = html.page(made.processes, made.findings, made.syscalls)
    reader = Reader()
    reader.feed(page)
    content, script = reader.scripts
    assert json.loads(content)["processes"][0]["threads"][0]["name"] == name
    assert script.strip().startswith('"use strict"')
    assert [link for link in reader.links if not link.startswith("data:")] == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


@pytest.mark.parametrize("name", ["worker", EVIL])
def test_the_chrome_trace_has_an_event_a_stretch(name: str) -> None:
    stream = io.StringIO()
    chrome.write([process(name)], stream)
    events = json.loads(stream.getvalue())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert names == {name, "thread 11", f"{name} imports"}
    stretches = [event for event in events if event.get("cat") == "gil"]
    assert [(event["ts"], event["dur"], event["name"]) for event in stretches] == [
        (1.0, 5000.0, "running"),
        (5001.0, 4000.0, "blocked in I/O"),
        (1.0, 5000.0, "waiting for the GIL"),
    ]
    assert stretches[0]["args"]["stack"] == [f"/app/{name}.py:3 in work"]


def test_no_events_of_a_track_overlap_partially() -> None:
    """Perfetto drops overlapping events, so an import that spans several states has another track."""
    found = {"name": "app", "parent": None, "thread": 0, "begin_ns": 4_000_000, "total_ns": 3_000_000, "self_ns": 1}
    inner = {**found, "name": "app.part", "begin_ns": 4_500_000, "total_ns": 1_000_000}
    nowhere = {**found, "thread": 7}
    stream = io.StringIO()
    chrome.write([process(imports=[found, inner, nowhere])], stream)
    events = json.loads(stream.getvalue())["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    tracks: dict[str, list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            begin = round(event["ts"] * 1000)
            tracks.setdefault(names[event["tid"]], []).append((begin, begin + round(event["dur"] * 1000)))
    assert {name: len(spans) for name, spans in tracks.items()} == {
        "worker": 2,
        "thread 11": 1,
        "worker imports": 2,
        "imports": 1,
    }
    for spans in tracks.values():
        for (begin, end), (later, its_end) in itertools.combinations(sorted(spans), 2):
            assert later >= end or its_end <= end, (begin, end, later, its_end)


def test_collapsed_stacks_are_one_a_line() -> None:
    assert collapsed.lines([process("a;b")]) == ["a,b;a,b.py:work:3;running 5000"]


def test_the_terminal_gets_no_control_characters() -> None:
    made = report.make([process(EVIL)])
    text = terminal.text(made.processes, made.findings, Syscalls())
    assert "\x1b" not in text
    assert "not the cause" in text


def test_the_data_has_a_schema() -> None:
    made = report.make([process()])
    document = json.loads(data.text(made.processes, made.findings, made.syscalls))
    assert document["schema"] == 1
    assert document["processes"][0]["threads"][0]["running_ns"] == 5
    assert "stretches" not in document["processes"][0]["threads"][0]


def test_a_report_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    def fail(_stream: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        report.write(tmp_path / "trace.html", fail)
    assert list(tmp_path.iterdir()) == []


def test_library_lines_are_told_from_the_programs() -> None:
    made = process(
        text="cpython\x1f3.13\x1f/usr/lib/python3.13\x1fpython\x1fapp.py",
        locations={"1": ["/usr/lib/python3.13/threading.py", "wait", 3], "2": ["/srv/app.py", "main", 4],
                   "3": ["/usr/lib/python3.13/site-packages/x.py", "f", 5], "4": ["<frozen importlib>", "g", 6]},
        nodes={"1": [0, 2], "2": [1, 1], "3": [2, 4]},
    )  # fmt: skip
    assert str(made.line_of(3)) == "/srv/app.py:4 in main"
    assert [made.is_library(made.locations[number]) for number in (1, 2, 3, 4)] == [True, False, False, True]


@pytest.mark.parametrize(
    ("caller", "named"), [("/srv/app.py", "fill"), ("/srv/lib/site-packages/IPython/shell.py", "get"), (None, "get")]
)
def test_the_caller_stands_for_code_without_a_file(caller: str | None, named: str) -> None:
    made = process(
        text="cpython\x1f3.13\x1f/usr/lib/python3.13\x1fpython\x1fapp.py",
        locations={"1": ["/usr/lib/python3.13/multiprocessing/managers.py", "_callmethod", 3],
                   "2": ["<string>", "get", 2], "3": [caller or "", "fill", 5]},
        nodes={"1": [0, 3] if caller else [0, 2], "2": [1, 2], "3": [2, 1]},
    )  # fmt: skip
    line = made.line_of(3)
    assert line is not None
    assert line.function == named
