"""The ledger of a command: lines that are appended, summed and shortened."""

from pathlib import Path

from unsnarl.warm import ledger


def test_lines_are_summed() -> None:
    sums = ledger.parse("spent 1500\nplain 140\nsaved 300 2\nspent 200\nsaved 100 1\nodd\nspent x\nsaved 5\n")
    assert sums == ledger.Sums(spent_ms=1700, last_ms=200, saved_ms=400, calls=3, plain_ms=140)


def test_what_was_saved_pays_for_the_next_start() -> None:
    assert not ledger.Sums(spent_ms=1000, last_ms=1000, saved_ms=1999).affords()
    assert ledger.Sums(spent_ms=1000, last_ms=1000, saved_ms=2000).affords()


def test_own_imports_of_runs_repay_a_start_once_they_cost_as_much() -> None:
    sums = ledger.Sums(last_ms=1000, plain_ms=100)
    assert not sums.repays(199, 20)
    assert sums.repays(200, 20)
    assert ledger.Sums().repays(1, 0)  # nothing is known of the costs


def test_a_shortened_ledger_has_the_same_sums(tmp_path: Path) -> None:
    stem = str(tmp_path / "command")
    ledger.note(stem, "spent 700", "plain 140")
    for _ in range(ledger.LONG // 8):
        ledger.note(stem, "saved 12 1")
    ledger.note(stem, "spent 30")
    before = ledger.read(stem)
    ledger.shorten(stem)
    assert ledger.read(stem) == before
    assert Path(stem + ledger.SUFFIX).stat().st_size < 100


def test_what_was_asked_for_is_no_loss_and_says_what_a_start_costs(tmp_path: Path) -> None:
    stem = str(tmp_path / "command")
    for _ in range(ledger.LONG // 8):
        ledger.note(stem, "asked 1400")
    before = ledger.read(stem)
    assert (before.spent_ms, before.last_ms) == (0, 1400)
    ledger.shorten(stem)
    assert ledger.read(stem) == before


def test_a_start_that_failed_is_paid_for_and_says_nothing_about_the_next_one(tmp_path: Path) -> None:
    stem = str(tmp_path / "command")
    ledger.note(stem, "spent 300", "plain 140")
    ledger.note_failed(stem, {})
    failed_ms = ledger.read(stem).failed_ms
    assert failed_ms > 0
    ledger.note(stem, "failed 5", "asked 1200", "tried 9")
    for _ in range(ledger.LONG // 8):
        ledger.note(stem, "failed 1000")
    ledger.note_failed(stem, {ledger.ASKED: b"1"})
    before = ledger.read(stem)
    assert (before.last_ms, before.is_last_asked) == (1200, True)
    assert before.spent_ms == 300 + failed_ms + 5 + 1000 * (ledger.LONG // 8)
    assert before.asked_ms > 1200 + 9
    ledger.shorten(stem)
    assert ledger.read(stem) == before
    ledger.note(stem, "spent 310", "failed 1400")
    after = ledger.read(stem)
    assert (after.last_ms, after.is_last_asked) == (310, False)


def test_a_directory_that_is_gone_is_no_error(tmp_path: Path) -> None:
    ledger.note(str(tmp_path / "gone" / "command"), "spent 1")
    assert ledger.read(str(tmp_path / "gone" / "command")) == ledger.Sums()


def test_an_aborted_call_does_not_count_for_good(tmp_path: Path) -> None:
    stem = str(tmp_path / "command")
    ledger.note(stem, "plain 140", "call 90")
    ledger.note_call(stem, 10)
    ledger.note_call(stem, 95)
    ledger.note_call(stem, None)
    assert (ledger.read(stem).call_ms, ledger.read(stem).plain_ms) == (90, 140)
    for _ in range(ledger.LONG // 8):
        ledger.note(stem, "saved 12 1")
    before = ledger.read(stem)
    ledger.shorten(stem)
    assert ledger.read(stem) == before
    ledger.note(stem, *[f"call {ms}" for ms in (20, 21, 22, 23)])
    assert ledger.read(stem).call_ms == 22
    assert ledger.parse("").call_ms == 0


def test_what_an_aborted_call_has_taken_is_not_noted_as_what_a_plain_call_takes(tmp_path: Path) -> None:
    stem = str(tmp_path / "command")
    ledger.note_call(stem, 10)
    ledger.Serving(stem, 132, {})
    for _ in range(2):
        ledger.note_call(stem, 95)
    assert (ledger.read(stem).plain_ms, ledger.read(stem).call_ms) == (140, 95)
