"""The command line of ``unsnarl trace``: its options and those of run, in any order before the target."""

from pathlib import Path

import pytest

from unsnarl.cli import trace
from unsnarl.cli.failure import CommandError
from unsnarl.cli.tracing.arguments import parse


def test_options_and_the_program() -> None:
    request = parse(["--output", "a.html", "-X", "dev", "--size=64", "--patch", "--scheduler", "app.py", "--keep"])
    assert (request.output, request.json_output) == (Path("a.html"), Path("a.json"))
    assert (request.size_mb, request.scheduler, request.keep) == (64, True, False)
    assert (request.run.target, request.run.arguments) == ("app.py", ["--keep"])
    assert request.run.python_words == ["-X", "dev"]
    assert request.run.patch


def test_without_a_program() -> None:
    assert parse(["--read", "there", "--output=x.html"]).read == Path("there")
    assert parse(["--seconds", "2", "--attach", "4711"]).attach == 4711
    assert parse(["--seconds", "2", "--attach", "4711"]).seconds == 2


def test_without_a_gil_nothing_is_run_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(trace, "is_free_threaded", lambda: True)
    monkeypatch.delenv("UNSNARL", raising=False)
    program = tmp_path / "app.py"
    program.write_text("raise SystemExit('it ran')")
    with pytest.raises(CommandError, match="cannot be traced: this is a free-threaded build") as refused:
        trace.main([str(program)])
    assert refused.value.status == 1


def test_an_option_of_the_program_is_the_programs() -> None:
    request = parse(["-m", "http.server", "--read", "x"])
    assert request.read is None
    assert request.run.arguments == ["--read", "x"]


@pytest.mark.parametrize("words", [["--help"], ["-h"], ["--scheduler", "--help"]])
def test_help(words: list[str]) -> None:
    assert parse(words).wants_help


@pytest.mark.parametrize(
    "words",
    [
        *([], ["--size"], ["--size", "0", "a"], ["--what", "a"], ["--slice", "5", "a"], ["--output=a.json", "a"]),
        *(["--stats", "a"], ["--no-kernel-hints", "a"], ["--pack", "b", "a"]),
    ],
)
def test_nonsense_is_refused_in_the_verbs_own_name(words: list[str]) -> None:
    with pytest.raises(CommandError) as refusal:
        parse(words)
    assert refusal.value.status == 2
    assert "unsnarl run" not in refusal.value.what + refusal.value.hint or "belongs to" in refusal.value.what


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--data", "trace.html"], "--data cannot be 'trace.html': the report is"),
        (["--collapsed", "trace.json"], "--collapsed cannot be 'trace.json': the trace next to the report is"),
        (["--output", "x/a.html", "--data", "./x/../x/a.json"], "the trace next to the report is"),
        (["--data", "a", "--collapsed", "./a"], "--collapsed cannot be 'a': that of --data is"),
        (["--data", f"{Path.cwd()}/a", "--collapsed", "a"], "that of --data is"),
    ],
)
@pytest.mark.parametrize("rest", [["app.py"], ["--read", "x"]])
def test_two_files_of_one_name_are_refused(words: list[str], said: str, rest: list[str]) -> None:
    with pytest.raises(CommandError) as refusal:
        parse([*words, *rest])
    assert said in refusal.value.what


def test_green_is_said_to_be_for_run_alone() -> None:
    with pytest.raises(CommandError) as raised:
        parse(["--green", "app.py"])
    assert "--green is for `unsnarl run` alone" in raised.value.what
    assert raised.value.hint == "see `unsnarl trace --help`"


def test_an_option_after_the_program_is_the_programs() -> None:
    run = parse(["app.py", "--green", "--metrics"]).run
    assert (run.target, run.arguments, run.green) == ("app.py", ["--green", "--metrics"], False)


def test_two_recordings_are_compared() -> None:
    request = parse(["--compare", "a", "b", "--data", "c.json"])
    assert request.compare == (Path("a"), Path("b"))
    assert request.output == Path("comparison.html")
    assert parse(["--output", "x.html", "--compare=a", "b"]).output == Path("x.html")


@pytest.mark.parametrize(
    "words",
    [
        ["--compare"],
        ["--compare", "a"],
        ["--compare", "a", ""],
        ["--compare", "a", "b", "app.py"],
        ["--compare", "a", "b", "--read", "c"],
        ["--compare", "a", "b", "--keep"],
        ["--compare", "a", "b", "--data", "comparison.html"],
    ],
)
def test_a_comparison_takes_two_recordings_and_nothing_else(words: list[str]) -> None:
    with pytest.raises(CommandError) as refusal:
        parse(words)
    assert refusal.value.status == 2
    assert "--compare" in refusal.value.what or "--data" in refusal.value.what
