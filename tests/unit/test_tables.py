"""Every verb's tables and lines are whole at 80 and at 200 columns and in a pipe, with realistic names and figures."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.unit.test_doctor_comparison import diagnosis
from tests.unit.test_trace_findings import thread
from tests.unit.test_trace_views import process
from unsnarl.cli import cluster, gil, ipc, lab, pack, result, status, warm
from unsnarl.doctor import importtime, view
from unsnarl.enablement import Enablement
from unsnarl.trace import report
from unsnarl.trace.comparing import text as comparison
from unsnarl.trace.comparing.comparison import compare
from unsnarl.trace.model import Process
from unsnarl.trace.syscalls import CallTotal, Syscalls
from unsnarl.warm import facts as facts_of
from unsnarl.warm import ledger
from unsnarl.warm.managing import runtime_directory, shims

S = 1_000_000_000
LONG = "ThreadPoolExecutor-0_worker-with-a-name-of-its-own"
FILE = "/srv/application/lib/python3.13/site-packages/" + "some_package/" * 6 + "module.py"


def traced() -> Process:
    """Return a process with many threads, long names, and large figures."""
    figures = {"running_ns": 1234 * S, "waiting_ns": 99 * S, "on_lock_ns": 12 * S, "takes": 123_456_789}
    names = [*(f"{LONG}_{number}" for number in range(40)), "MainThread", "asyncio_0", "a-thread-named-" + "x" * 60]
    threads = [thread(number, name, longest_wait_ns=S, **figures) for number, name in enumerate(names)]
    threads = [{**entry, "stretches": [[0, S, 0, 1]]} for entry in threads]
    return process(threads=threads, locations={"1": [FILE, "a_function_of_that_module", 4711]}, length_ns=9 * S)


def calls() -> Syscalls:
    return Syscalls(rows=[CallTotal("futex", 123_456_789, 12_345, 99 * S, "MainThread and 40 others")])


def of_trace(columns: int) -> str:
    made = replace(report.make([traced()]), syscalls=calls())
    return made.text(columns)


def of_comparison(columns: int) -> str:
    return comparison.text(compare([traced()], [traced()]), columns)


def of_doctor(columns: int) -> str:
    found = diagnosis(("scheduler", 0.5), ("native primitives", 1.2), ("warm", 0.1), ("pack", 1.0))
    found.words = ["-m", "some_package.of_a_company", "--with", FILE]
    found.imports = [
        importtime.ImportTime(f"some_package.{'sub_package.' * 6}module_{n}", 0, 10**6, 10**7) for n in range(9)
    ]
    found.calls = calls()
    found.verdict = ["`unsnarl run` " + "makes it faster " * 20]
    return view.text(found, columns)


def of_cluster(_columns: int) -> str:
    row: Any = SimpleNamespace(
        kind="Semaphore", name="orders:eu-central-1", fence=123_456, host="worker-17.eu-central-1.example.org",
        pid=4_194_303, since_ms=1_700_000_000_000, ticket="0198f7d2-6a51-7c3e-b2d4-000000000001", is_shared=True,
    )  # fmt: skip
    waiting: Any = SimpleNamespace(**{**vars(row), "fence": None, "name": "short"})
    return cluster.table_of([row, waiting])


def of_lab(_columns: int) -> str:
    with pytest.MonkeyPatch.context() as patch:
        return shown(patch, lambda: lab.main(["list", "--cases"]))


def of_warm(_columns: int) -> str:
    info = {"command": "/srv/tools/bin/hg", "requests": "12345", "workers": "12", "modules": "345", "session": "a"}
    server: Any = SimpleNamespace(info=info, pid=4_194_303, memory_bytes=123_456_789, last_used_s=0.0)
    with pytest.MonkeyPatch.context() as patch:
        return shown(patch, lambda: result.show_fields(*warm.described(server)))


def of_account(_columns: int) -> str:
    sums = {"/r/a": ledger.Sums(spent_ms=12_345_678, saved_ms=123_456_789, calls=1_234_567, asked_ms=9_876_543)}
    sums["/r/b"] = sums["/r/a"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm, "_stems", always([("/srv/tools/bin/a-command", stem) for stem in sums]))
        patch.setattr(ledger, "read", sums.__getitem__)
        patch.setattr(warm, "_safe_runtime_directory", always("/r"))
        patch.setattr(runtime_directory, "servers", always([]))
        patch.setattr(shims, "names", always(["a-command-of-a-company"]))
        return shown(patch, lambda: warm.main(["status"]))


def of_why(_columns: int) -> str:
    known = facts_of.Facts()
    known.variables = [f"A_VARIABLE_{number}" for number in range(20)]
    known.asks_tty = known.asks_cwd = known.asks_umask = True
    known.notes = ["some_package.module keeps " + "a value of its start, " * 6 + "which is made again"]
    refused = facts_of.Facts()
    refused.refusals = ["some_package.module starts a thread " + "while it is imported, " * 6 + "and keeps it"]
    pairs = [("/srv/tools/bin/a-command", known), ("/srv/tools/bin/a-command", refused)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm, "_learned", always(pairs))
        return shown(patch, lambda: (warm.main(["why", "a-command"]), warm.main(["why", "--call", "", "a-command"])))


def of_status(_columns: int) -> str:
    options, commands = ["--patch", "--batch-share", "40"], [f"a-command-{number}" for number in range(20)]
    found = Enablement(options, commands, "/srv/elsewhere", "/srv/application/.venv/unsnarl-enabled.pth")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unsnarl.enablement.find", always(found))
        patch.setattr("unsnarl.enablement.directory", always("/srv/application/.venv"))
        patch.setattr("sys.prefix", "/srv/application/.venv")
        return shown(patch, lambda: status.main([]))


def of_probe(_columns: int) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.executable", "/srv/application/environments/production/bin/python3.13")
        patch.setattr(gil, "check", always(None))  # how it can fail is other tests' matter
        return shown(patch, lambda: gil.main(["probe"]))


def of_ipc(_columns: int) -> str:
    users = list(range(4_194_200, 4_194_303, 5))
    row: dict[str, Any] = {
        "name": "orders-eu-central-1-queue",
        "kind": "Queue",
        "size": 2**40,
        "users": users,
        "used": True,
    }
    refused: dict[str, Any] = {"name": "refused", "kind": None, "size": 1, "users": [], "used": False}
    rows = [{**row, "problem": None}, {**refused, "problem": "refused: the segment " + "has another layout, " * 6}]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unsnarl._native.ipc_list", always(rows))
        return shown(patch, lambda: ipc.main(["list"]))


def of_pack(_columns: int) -> str:
    recording: Any = SimpleNamespace(paths=dict.fromkeys("abc", "/srv"), doubts=[], optimize=0)
    program: Any = SimpleNamespace(kind="module", name="some_package")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pack, "_program", always(program))
        patch.setattr(pack, "_refuse_to_destroy", always(None))
        patch.setattr(pack, "_learn", always((recording, {"a"})))
        patch.setattr("unsnarl.pack.launcher.text", always(""))
        patch.setattr("unsnarl.pack.recorder.build", always(b"x" * 10**6))
        patch.setattr("unsnarl.pack.recorder.store", always(None))
        out = "/srv/application/environments/production/packs/some_package.pack"
        return shown(patch, lambda: pack.main(["-m", "some_package", "--lazy", "-o", out]))


def always(value: object) -> Callable[..., object]:
    """Return a function that returns the value, whatever it is called with."""

    def given(*_arguments: object, **_named: object) -> object:
        return value

    return given


def shown(patch: pytest.MonkeyPatch, act: Callable[[], object]) -> str:
    """Return what a verb writes to stdout."""
    written: list[str] = []
    patch.setattr("sys.stdout", SimpleNamespace(write=written.append, flush=lambda: None))
    act()
    return "".join(written)


RENDERERS = [
    of_trace, of_comparison, of_doctor, of_cluster, of_lab, of_warm, of_account, of_why, of_status, of_probe, of_ipc,
    of_pack,
]  # fmt: skip


@pytest.mark.parametrize("columns", [80, 200])
@pytest.mark.parametrize("renderer", RENDERERS, ids=lambda renderer: renderer.__name__.removeprefix("of_"))
def test_lines_fit_and_words_are_whole(
    renderer: Callable[[int], str], columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    text = renderer(columns)
    assert [line for line in text.splitlines() if len(line) > columns] == []
    assert not re.search(r"\S…|…\S", text)
    assert "\x1b" not in text
    # A word that is wider than no line is on one line: each word of the widest layout is in the narrow one as well.
    monkeypatch.setenv("COLUMNS", "10000")
    words = {word for word in renderer(10_000).split() if len(word) < columns - 6}
    assert words - set(text.split()) <= {"switches", "middle", "half", "–"} | dropped(text)


def dropped(text: str) -> set[str]:
    """Return the figures of the columns that doctor leaves out on a narrow terminal, as its guide says."""
    return {"1", "1.00", "0.50", "1.20", "0.10", "500", "100", "ms", "s"} if "against stock" in text else set()


def test_a_wide_terminal_has_one_line_a_row() -> None:
    wide = of_trace(200).splitlines()
    assert any(line.startswith(f"{LONG}_0 … {LONG}_39  ") and line.endswith("1.00 s") for line in wide)


def test_a_pipe_has_one_line_a_sentence_and_whole_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    made = report.make([traced()])
    text = made.text()
    assert made.findings[0].title in text
    assert {f"{LONG}_0", f"{LONG}_39", "…"} <= set(text.split())
    assert max(map(len, text[text.index("process 7:") :].splitlines())) <= 80
