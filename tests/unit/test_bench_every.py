"""The comparison of commands plain and warm: what two plain runs do not share counts for nothing, all else counts."""

import json
from pathlib import Path

from bench.warm import every


def outcome(text: str, files: dict[str, str] | None = None, status: int = 0) -> dict[str, object]:
    return {"status": status, "stdout": text, "stderr": "", "files": files or {}}


def test_what_differs_between_plain_runs_is_compared_with_nothing() -> None:
    plain, again = outcome("a\nin 1 s\n", {"log": "x"}), outcome("a\nin 2 s\n", {"log": "y"})
    assert every.differences(plain, again, outcome("a\nin 3 s\n", {"log": "z"})) == []
    found = every.differences(plain, again, outcome("b\nin 3 s\n"))
    assert len(found) == 1
    assert found[0].startswith("stdout: ")


def test_names_that_differ_from_run_to_run_are_no_difference(tmp_path: Path) -> None:
    place = every.Place(tmp_path, {}, "/bin")
    found: list[dict[str, str]] = []
    for drawn, moment in (("tmpabcdefgh", "2026-11-28T004531.123456"), ("tmp12345678", "2026-11-29T104531.654321")):
        place.restore()
        (place.temporary / drawn).mkdir()
        (place.work / "log").mkdir()
        (place.work / "log" / f"{moment}.snakemake.log").write_text("text")
        (place.work / "tmpdir-2026").write_text("text")
        found.append(place.files())
    assert found[0] == found[1]
    assert [*found[0]] == ["work/log", "work/log/….snakemake.log", "work/tmpdir-2026", "tmp/…"]


def test_a_status_and_a_file_count() -> None:
    plain = outcome("", {"work/out": "100644 1"})
    assert every.differences(plain, plain, outcome("", {}, 1)) == [
        "status 1, not 0",
        "file work/out: missing, not 100644 1",
    ]


def test_the_page_begins_with_the_losses() -> None:
    case: dict[str, object] = {"status": 0, "served": True, "differences": []}
    where = {"python": "3.13.0", "sources": "abc"}
    lost = case | {"served": False, "reason": "prints", "differences": ["status 1, not 0"]}
    page = every.render({"tool": {"where": where, "pipes": case, "terminal": lost}, "other": {"missing": True}})
    assert page.index("`tool`, terminal: status 1") < page.index("`tool`, terminal: prints") < page.index("| `tool` |")
    assert "Not installed where this was run: `other`." in page


def test_the_manifest_is_whole() -> None:
    manifest = json.loads(every.MANIFEST.read_text())
    assert len({tuple(words) for words in manifest["commands"]}) == len(manifest["commands"]) >= 40
