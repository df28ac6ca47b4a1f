"""The start of a program is a finding if it is long, or a large part of a short run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.test_trace_findings import thread
from tests.unit.test_trace_views import process
from unsnarl.trace.findings import repeated_imports
from unsnarl.trace.findings.conclusions import lost_records
from unsnarl.trace.findings.startup import findings
from unsnarl.trace.model import MOST_IMPORTS, RUNNING, SLEEPING, Process

MS = 1_000_000


def one_import(length_ns: int) -> dict[str, object]:
    return {
        "name": "app",
        "parent": None,
        "thread": 0,
        "begin_ns": 30 * MS,
        "total_ns": length_ns,
        "self_ns": 0,
    }


@pytest.mark.parametrize(
    ("run_ms", "first_line_ms", "import_ms", "kind"),
    [
        (1000, 20, 160, "slow-start"),  # long by itself
        (1000, 20, 100, "quick-start"),
        (200, 20, 50, "slow-start"),  # a third of the run
        (50, 20, 20, "quick-start"),  # nearly the whole run, and too short to matter
        (60, 0, 55, "quick-start"),  # the first line was not reached: the length of the start is unknown
    ],
)
def test_what_a_slow_start_is(run_ms: int, first_line_ms: int, import_ms: int, kind: str) -> None:
    found = findings(
        process(
            length_ns=run_ms * MS,
            first_line_ns=first_line_ms * MS,
            imports=[one_import(import_ms * MS)],
        )
    )
    assert [finding.kind for finding in found] == [kind]


def test_imports_that_are_a_small_part_of_a_long_run_are_no_matter() -> None:
    found = findings(process(length_ns=60_000 * MS, first_line_ns=20 * MS, imports=[one_import(400 * MS)]))
    assert [finding.kind for finding in found] == ["quick-start"]


@pytest.mark.parametrize(("import_ms", "kinds"), [(60, []), (120, ["slow-start"])])
def test_a_long_start_is_a_finding_where_imports_explain_it(import_ms: int, kinds: list[str]) -> None:
    """The rest is the interpreter's own, or a busy machine's; `unsnarl warm` saves it as well."""
    early = one_import(import_ms * MS) | {"begin_ns": 0}
    start: dict[str, Any] = {"length_ns": 400 * MS, "first_line_ns": 200 * MS, "imports": [early]}
    assert [finding.kind for finding in findings(process(**start))] == kinds
    tool: dict[str, Any] = {"text": "cpython\x1f3.13\x1f/lib\x1fpython\x1f/venv/bin/tool"}
    assert [finding.kind for finding in findings(process(**start, **tool))] == ["slow-start"]


@pytest.mark.parametrize(("before_ms", "details"), [(9, []), (80, ["80.0 ms of it passed before the recording began"])])
def test_a_long_start_is_a_part_of_the_whole_run(before_ms: int, details: list[str]) -> None:
    early = one_import(80 * MS) | {"begin_ns": 0}
    began: dict[str, Any] = {"started_ns": 1000 * MS, "executed_ns": (1000 - before_ms) * MS}
    [found] = findings(process(length_ns=120 * MS, first_line_ns=80 * MS, imports=[early], **began))
    start_ms = before_ms + 80
    assert found.title.startswith(f"the start is {100 * start_ms / (before_ms + 120):.0f} % of {before_ms + 120} ms: ")
    assert found.details == details


def test_imports_before_the_first_line_count_once() -> None:
    early = one_import(20 * MS) | {"begin_ns": 0}
    command = {"text": "cpython\x1f3.13\x1f/lib\x1fpython\x1f/venv/bin/tool"}
    imports = [early, one_import(40 * MS)]
    found = findings(process(length_ns=100 * MS, first_line_ns=30 * MS, imports=imports, **command))
    assert found[0].figures["start_ns"] == 70 * MS
    assert found[0].remedy is not None
    assert found[0].remedy.saves_ns == 70 * MS


def test_a_start_that_was_not_seen_is_no_matter_of_the_report() -> None:
    """An attached process and a forked process have no recorded start."""
    assert findings(process(length_ns=100 * MS, first_line_ns=0, imports=[])) == []


def test_a_start_whose_records_are_lost_is_not_called_quick() -> None:
    gone: dict[str, Any] = {"overwritten": 7, "records_from_ns": 800 * MS, "start_until_ns": 20 * MS}
    lost = process(length_ns=900 * MS, first_line_ns=30 * MS, imports=[], **gone)
    assert findings(lost) == []
    [said] = lost_records(lost)
    assert "the timeline begins at 800 ms, and so do imports" in said.title


def test_a_start_that_is_kept_is_told_after_later_records_were_lost() -> None:
    gone: dict[str, Any] = {"overwritten": 7, "records_from_ns": 800 * MS, "start_until_ns": 300 * MS}
    kept = process(length_ns=900 * MS, first_line_ns=200 * MS, imports=[one_import(160 * MS)], **gone)
    assert findings(kept)[0].figures["imports"] == 1
    [said] = lost_records(kept)
    assert "the imports of the start are kept" in said.title


@pytest.mark.parametrize(
    ("processor_ms", "state", "kinds"),
    [
        (390, RUNNING, ["slow-import"]),
        (40, RUNNING, []),  # without a processor for most of the time: the machine is busy
        (40, SLEEPING, ["slow-import"]),  # the module itself waits
        (None, RUNNING, ["slow-import"]),
    ],
)
def test_a_module_is_not_blamed_for_the_time_without_a_processor(
    processor_ms: int | None, state: int, kinds: list[str]
) -> None:
    entry = one_import(400 * MS) | {"processor_ns": None if processor_ms is None else processor_ms * MS}
    stretches = [[0, 1000 * MS, state, 0]]
    busy = process(length_ns=1000 * MS, imports=[entry], threads=[thread(0, "MainThread") | {"stretches": stretches}])
    assert [finding.kind for finding in findings(busy) if finding.kind == "slow-import"] == kinds


@pytest.mark.parametrize(("processor_ms", "kinds"), [(20, ["quick-start"]), (240, ["slow-start"])])
def test_imports_are_not_blamed_for_the_time_without_a_processor(processor_ms: int, kinds: list[str]) -> None:
    imports = [one_import(120 * MS) | {"name": name, "processor_ns": processor_ms * MS // 2} for name in ("a", "b")]
    busy = process(length_ns=1000 * MS, first_line_ns=20 * MS, imports=imports)
    assert [finding.kind for finding in findings(busy)] == kinds


def test_a_module_below_has_no_more_time_than_a_processor() -> None:
    """A busy machine, on which the modules below would seem to take longer than what imported them."""
    outer = one_import(900 * MS) | {"processor_ns": 300 * MS}
    inner = {"name": "inner", "parent": 0, "thread": 0, "begin_ns": 40 * MS, "self_ns": 800 * MS}
    imports = [outer, inner | {"total_ns": 800 * MS, "processor_ns": 200 * MS}]
    [found] = (one for one in findings(process(length_ns=1000 * MS, imports=imports)) if one.kind == "slow-import")
    assert found.figures["total_ns"] == 300 * MS
    assert found.details == ["most of it by themselves: `inner` 200 ms"]


def test_a_module_whose_body_ran_later_is_one_import() -> None:
    found, body = one_import(1 * MS), one_import(160 * MS)
    [finding] = findings(process(length_ns=1000 * MS, first_line_ns=20 * MS, imports=[found, body]))
    assert finding.figures["imports"] == 1
    assert "1 imports took 161 ms" in finding.title


@pytest.mark.parametrize(
    ("words", "commands"),
    [
        ("/venv/bin/tool", ["unsnarl warm", "unsnarl pack"]),
        ("-m\x1ftool", ["unsnarl pack"]),
        ("app.py", [None]),
        ("-c\x1fpass", [None]),
    ],
)
def test_a_remedy_that_refuses_the_command_is_not_named(words: str, commands: list[str | None]) -> None:
    started = process(
        length_ns=1000 * MS,
        first_line_ns=20 * MS,
        imports=[one_import(160 * MS)],
        text=f"cpython\x1f3.13\x1f/lib\x1fpython\x1f{words}",
    )
    [finding] = findings(started)
    assert [remedy.command for remedy in finding.remedies] == commands


@pytest.mark.parametrize(
    ("times", "names", "kinds"),
    [
        (40, ["codec"], ["repeated-import"]),
        (19, ["codec"], []),
        (40, ["codec", "other", "third"], []),  # each of them less than twenty times
    ],
)
def test_a_module_that_is_imported_again_and_again(times: int, names: list[str], kinds: list[str]) -> None:
    imports = [one_import(5 * MS) | {"name": names[number % len(names)]} for number in range(times)]
    run = process(length_ns=300 * MS, imports=imports)
    found = repeated_imports.findings(run)
    assert [finding.kind for finding in found] == kinds
    if found:
        assert found[0].title.startswith("`codec` is imported 40 times: 200 ms (67 % of the run)")
        assert "slow-import" not in {finding.kind for finding in findings(run)}


LOAD = ("<frozen importlib._bootstrap>", "_load_unlocked", 935)
FIND = ("<frozen importlib._bootstrap_external>", "FileFinder.find_spec", 1628)
CALL = ("<frozen importlib._bootstrap>", "_find_and_load", 1360)


def run_in_stacks(imports: list[dict[str, object]], *stacks: tuple[list[tuple[str, str, int]], int]) -> Process:
    """Return a run of a second with a thread that ran at stacks, the innermost line first, for some milliseconds."""
    locations: dict[str, list[object]] = {}
    nodes: dict[str, list[int]] = {}
    times: list[list[int]] = []
    for stack, time_ms in stacks:
        times.append([0, RUNNING, len(nodes) + 1, time_ms * MS])
        for index, line in enumerate(stack, 1):
            number = len(nodes) + 1
            locations[str(number)] = list(line)
            nodes[str(number)] = [number + 1 if index < len(stack) else 0, number]
    return process(length_ns=1000 * MS, imports=imports, locations=locations, nodes=nodes, stacks=times)


def searched(times: int, each_ns: int) -> list[dict[str, object]]:
    return [one_import(each_ns) | {"name": "codec"} for _ in range(times)]


def test_an_import_that_fails_is_not_blamed_for_the_body_of_another_module() -> None:
    body = [("/srv/slow.py", "<module>", 3), LOAD, CALL, ("/srv/app.py", "<module>", 1)]
    assert repeated_imports.findings(run_in_stacks(searched(25, MS // 100), (body, 700))) == []
    assert repeated_imports.findings(run_in_stacks(searched(MOST_IMPORTS, MS // 1000), (body, 700))) == []


def test_the_line_of_a_repeated_import_is_the_one_that_names_it(tmp_path: Path) -> None:
    app = tmp_path / "app.py"
    app.write_text("import slow\nimport codec\n")
    body = [("/srv/slow.py", "<module>", 3), LOAD, CALL, (str(app), "<module>", 1)]
    other, own = [FIND, CALL, (str(app), "<module>", 1)], [FIND, CALL, (str(app), "<module>", 2)]
    [found] = repeated_imports.findings(run_in_stacks(searched(25, 8 * MS), (body, 500), (other, 150), (own, 90)))
    assert (found.place, found.figures["total_ns"]) == (f"{app}:2 in <module>", 200 * MS)


def test_searches_that_are_no_longer_recorded_count_by_their_stacks() -> None:
    own = [FIND, CALL, ("/srv/app.py", "encode", 4)]
    [found] = repeated_imports.findings(run_in_stacks(searched(MOST_IMPORTS, MS // 100), (own, 600)))
    assert found.figures["total_ns"] == 600 * MS
    assert "5,000 times or more" in found.title


@pytest.mark.parametrize("is_first_inside", [False, True])
def test_a_package_is_slow_whatever_becomes_of_a_part_of_it(is_first_inside: bool) -> None:
    """The first import of the part may be what imports the package."""
    package = one_import(400 * MS) | {"name": "pkg"}
    part = one_import(MS) | {"name": "pkg.speedups"}
    imports = [part | {"total_ns": 401 * MS}, package | {"parent": 0}] if is_first_inside else [package]
    run = process(length_ns=1000 * MS, first_line_ns=20 * MS, imports=imports + [part] * 25)
    [found] = [finding for finding in findings(run) if finding.kind == "slow-import"]
    assert (found.place, found.figures["total_ns"]) == ("pkg", 400 * MS)
    assert repeated_imports.findings(run) == []


def test_modules_that_each_repeated_import_imports_are_a_part_of_it() -> None:
    imports: list[dict[str, object]] = []
    for number in range(30):
        imports += [one_import(9 * MS) | {"name": "pkg"}, one_import(8 * MS) | {"name": "sub", "parent": 2 * number}]
    [found] = repeated_imports.findings(process(length_ns=1000 * MS, imports=imports))
    assert found.figures["total_ns"] == 270 * MS


def imports_of(**lengths_ms: int) -> list[dict[str, object]]:
    return [one_import(length_ms * MS) | {"name": name} for name, length_ms in lengths_ms.items()]


def test_modules_that_take_long_are_one_finding() -> None:
    [found] = findings(process(length_ns=2000 * MS, imports=imports_of(app=300, orm=500, tiny=5)))
    assert (found.kind, found.place, found.figures["total_ns"]) == ("slow-import", "orm", 800 * MS)
    assert "others that take long: `app` 300 ms" in found.details


@pytest.mark.parametrize(
    ("command", "kinds"),
    [("/app/app.py", ["slow-import"]), ("/venv/bin/tool", ["slow-import", "slow-start"])],
)
def test_the_start_is_said_to_be_slow_beside_a_slow_module_where_a_command_helps(
    command: str, kinds: list[str]
) -> None:
    text = f"cpython\x1f3.13\x1f/lib\x1fpython\x1f{command}"
    found = findings(process(length_ns=2000 * MS, imports=imports_of(app=300, tiny=50), text=text))
    assert [finding.kind for finding in found] == kinds


def test_many_imports_of_which_a_slow_one_is_a_small_part_are_a_finding_too() -> None:
    many = {f"m{number}": 100 for number in range(9)}
    found = findings(process(length_ns=5000 * MS, imports=imports_of(app=300, **many)))
    assert [finding.kind for finding in found] == ["slow-import", "slow-start"]
