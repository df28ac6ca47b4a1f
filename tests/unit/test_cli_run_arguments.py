"""The command line of ``unsnarl run``, compared with python's own parsing of the same words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.cli.failure import USAGE, CommandError
from unsnarl.cli.program.arguments import CODE, COMMAND, FILE, MODULE, SLICE_MS_RANGE, STDIN, parse


@pytest.mark.parametrize(
    ("words", "kind", "target", "python_words", "arguments"),
    [
        (["app.py"], FILE, "app.py", [], []),
        (["app.py", "-x", "--stats"], FILE, "app.py", [], ["-x", "--stats"]),
        (["app.py", "--", "y"], FILE, "app.py", [], ["--", "y"]),
        (["--", "gunicorn", "app:app"], COMMAND, "gunicorn", [], ["app:app"]),
        (["--", "-u"], COMMAND, "-u", [], []),
        (["--", "--"], COMMAND, "--", [], []),
        (["-"], STDIN, "-", [], []),
        (["-", "-"], STDIN, "-", [], ["-"]),
        (["-m", "http.server", "-h"], MODULE, "http.server", ["-m", "http.server"], ["-h"]),
        (["-mhttp.server", "0"], MODULE, "http.server", ["-mhttp.server"], ["0"]),
        (["-um", "m", "--", "x"], MODULE, "m", ["-um", "m"], ["--", "x"]),
        (["-m", "--", "x"], MODULE, "--", ["-m", "--"], ["x"]),
        (["-c", "pass", "-c"], CODE, "pass", ["-c", "pass"], ["-c"]),
        (["-c", ""], CODE, "", ["-c", ""], []),
        (["-cpass"], CODE, "pass", ["-cpass"], []),
        (["-uW", "error", "app.py"], FILE, "app.py", ["-uW", "error"], []),
        (["-Werror", "-Xdev", "app.py"], FILE, "app.py", ["-Werror", "-Xdev"], []),
        (["-X", "-u", "app.py"], FILE, "app.py", ["-X", "-u"], []),
        (["--check-hash-based-pycs", "always", "a"], FILE, "a", ["--check-hash-based-pycs", "always"], []),
    ],
)
def test_words_are_read_as_python_reads_them(
    words: list[str], kind: str, target: str, python_words: list[str], arguments: list[str]
) -> None:
    request = parse(words)
    assert (request.kind, request.target) == (kind, target)
    assert (request.python_words, request.arguments) == (python_words, arguments)


def test_defaults() -> None:
    request = parse(["app.py"])
    assert (request.slice_ms, request.kernel_hints, request.children, request.stats) == (None, True, True, "no")


def test_our_options_stand_anywhere_before_the_target() -> None:
    words = ["-u", "--stats=all", "-W", "error", "--slice", "2.5", "--no-children", "--no-kernel-hints", "-m", "m"]
    request = parse(words)
    assert (request.slice_ms, request.kernel_hints, request.children, request.stats) == (2.5, False, False, "all")
    assert request.python_words == ["-u", "-W", "error", "-m", "m"]
    assert request.python_flags == {"u", "W", "m"}


@pytest.mark.parametrize(("text", "share"), [("40%", 0.4), ("40", 0.4), ("0%", 0.0), ("90%", 0.9)])
def test_a_share_is_a_percentage(text: str, share: float) -> None:
    assert parse(["--batch-share", text, "app.py"]).batch_share == pytest.approx(share)
    assert parse([f"--batch-share={text}", "app.py"]).batch_share == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "91%", "-1", "nan", "inf", "a fifth", "40 percent"])
def test_another_share_is_refused(text: str) -> None:
    with pytest.raises(CommandError, match=r"--batch-share takes a percentage") as caught:
        parse([f"--batch-share={text}", "app.py"])
    assert caught.value.status == USAGE


@pytest.mark.parametrize(
    ("words", "stats"), [(["--stats"], "main"), (["--stats=main"], "main"), (["--stats=all"], "all")]
)
def test_who_prints_statistics(words: list[str], stats: str) -> None:
    assert parse([*words, "app.py"]).stats == stats


@pytest.mark.parametrize("words", [["-h"], ["--help"], ["-u", "--help"], ["--stats", "-h", "app.py"]])
def test_help_needs_no_target(words: list[str]) -> None:
    assert parse(words).wants_help


def test_help_of_the_program_is_the_programs() -> None:
    request = parse(["app.py", "--help"])
    assert not request.wants_help
    assert request.arguments == ["--help"]


@given(st.floats())
def test_a_slice_is_in_range_or_refused(slice_ms: float) -> None:
    low, high = SLICE_MS_RANGE
    if low <= slice_ms <= high:
        assert parse([f"--slice={slice_ms!r}", "app.py"]).slice_ms == slice_ms
    else:
        with pytest.raises(CommandError) as caught:
            parse([f"--slice={slice_ms!r}", "app.py"])
        assert caught.value.status == USAGE


OPTIONS = st.sampled_from(
    ["-u", "-uB", "-W", "-Wx", "-X", "-m", "-c", "-cx", "-um", "-", "--", "--stats", "--slice", "--slice=3", "-z", "-S"]
)
WORDS = st.lists(OPTIONS | st.text(max_size=4), max_size=7)


@given(WORDS)
def test_no_words_are_lost_or_made_up(words: list[str]) -> None:
    """A request contains, in order, all words that are no options of unsnarl; everything else is refused."""
    try:
        request = parse(words)
    except CommandError:
        return
    if request.wants_help:
        return
    inline = request.kind in (MODULE, CODE)
    handed_on = [*request.python_words, *([] if inline else [request.target]), *request.arguments]
    assert _is_subsequence(handed_on, words)
    dropped = len(words) - len(handed_on)
    ours = sum(word in ("--stats", "--slice=3") for word in words) + 2 * words.count("--slice") + words.count("--")
    assert dropped <= ours


def _is_subsequence(some: list[str], words: list[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in some)
