"""``unsnarl demo``: refused command lines, and one short real run."""

import json
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from unsnarl.cli import demo
from unsnarl.cli.failure import CommandError
from unsnarl.demo import measurement
from unsnarl.demo.child import ChildError, SilentChildError
from unsnarl.demo.measurement import GUNICORN, STDLIB
from unsnarl.statistics import FEWEST_PAIRS

BOTH = (STDLIB, GUNICORN)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--seconds", "soon"], "'soon'"),
        (["--seconds", "-1"], "'-1'"),
        (["--seconds", "nan"], "'nan'"),
        (["--seconds", "1e9"], "'1e9'"),
        (["--threads", "-1"], "'-1'"),
        (["--threads", "2.5"], "'2.5'"),
        (["--threads", "1000"], "'1000'"),
        (["--svg"], "--svg"),
        (["--svg", "."], "directory"),
        (["--svg", "no/such/folder/demo.svg"], "no directory no/such/folder"),
        (["--bogus"], "--bogus"),
        (["more"], "more"),
    ],
)
def test_a_senseless_command_line_fails_at_once(arguments: list[str], word: str) -> None:
    with pytest.raises(CommandError) as raised:
        demo.main(arguments)
    assert word in raised.value.what
    assert raised.value.hint
    assert raised.value.status == 2


def test_the_kill_switch_leaves_nothing_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNSNARL", "off")
    with pytest.raises(CommandError, match="UNSNARL=off"):
        demo.main([])


@pytest.mark.parametrize(
    ("failure", "hint"),
    [
        (SilentChildError("the load sent nothing for 30.1 s"), "too busy"),
        (ChildError("the server ended early"), "gil probe"),
    ],
)
def test_a_server_that_fails_has_a_next_step(failure: ChildError, hint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object) -> None:
        raise failure

    monkeypatch.setattr(measurement, "measure", fail)
    with pytest.raises(CommandError, match=str(failure)) as raised:
        demo.main(["--quick"])
    assert hint in raised.value.hint
    assert raised.value.status == 1


def test_help_is_a_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--help"]) == 0
    assert "--svg FILE" in capsys.readouterr().out


def test_the_time_is_spread_over_all_windows() -> None:
    options = demo.options_of(["--seconds", "36"])
    plan = demo.plan_of(options, BOTH)
    assert plan.kinds == BOTH
    assert plan.window_s * plan.window_count() == pytest.approx(36)


def test_quick_is_one_server_and_as_many_pairs_as_are_judged() -> None:
    usual, quick = (demo.plan_of(demo.options_of(words), BOTH) for words in ([], ["--quick"]))
    assert quick.kinds == (STDLIB,)
    assert quick.pairs == usual.pairs == FEWEST_PAIRS


@pytest.mark.needs_gil
def test_a_short_run_prints_json_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "CONNECTIONS", (2,))
    picture = tmp_path / "demo.svg"
    # A second per window: long enough for an answer on a machine under other load.
    assert demo.main(["--quick", "--seconds", "4", "--threads", "1", "--json", "--svg", str(picture)]) == 0
    printed = capsys.readouterr()
    document = json.loads(printed.out)
    assert [(c["server"], c["connections"]) for c in document["comparisons"]] == [("stdlib", 2)]
    assert all(window["requests_per_s"] > 0 and window["work_per_s"] > 0 for window in document["windows"])
    assert document["python"] == ".".join(map(str, sys.version_info[:3]))
    assert str(picture) in printed.err
    ET.fromstring(picture.read_text())
