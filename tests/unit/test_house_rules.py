"""Each rule of scripts/house_rules.py can fail, and leaves alone what keeps it."""

from pathlib import Path
from textwrap import dedent

import house_rules
import pytest


class Project:
    """A project of a few files, as the rules see it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: list[Path] = []

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        self.files.append(Path(name))

    def places(self, rule: house_rules.Rule) -> list[str]:
        """Return `file:line` of each complaint, or the file where the complaint names no line."""
        return [complaint.partition(": ")[0] for complaint in rule(self.files)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setattr(house_rules, "ROOT", tmp_path)
    return Project(tmp_path)


def test_a_file_is_short(project: Project) -> None:
    project.write("short.py", "x = 1\n" * house_rules.MAX_LINES)
    project.write("long.py", "x = 1\n" * (house_rules.MAX_LINES + 1))
    assert project.places(house_rules.lengths) == ["long.py"]


def test_a_file_opens_with_what_it_is(project: Project) -> None:
    project.write("told.rs", "//! A queue.\n")
    project.write("bare.rs", "struct Queue;\n")
    project.write("bare.py", "x = 1\n")
    project.write("empty.py", "")
    assert project.places(house_rules.headers) == ["bare.rs", "bare.py"]


def test_a_file_is_named_after_its_subject(project: Project) -> None:
    project.write("queue.py", "")
    project.write("queue_utils.py", "")
    assert project.places(house_rules.names) == ["queue_utils.py"]


def test_nothing_is_left_half_done(project: Project) -> None:
    project.write("half.py", '"""Half."""\n# ' + "TO" + "DO: the rest\n")
    assert project.places(house_rules.finished) == ["half.py:2"]


@pytest.mark.parametrize("crates", ["0.1.0", "0.2.0"])
def test_there_is_one_version(project: Project, crates: str) -> None:
    project.write("Cargo.toml", f'[workspace.package]\nversion = "{crates}"\n')
    project.write("pyproject.toml", '[project]\nversion = "0.1.0"\n')
    assert len(project.places(house_rules.versions)) == (crates != "0.1.0")


@pytest.mark.parametrize("is_long", [False, True])
def test_the_architecture_is_a_map(project: Project, is_long: bool) -> None:
    project.write("ARCHITECTURE.md", "\n" * (house_rules.MAX_ARCHITECTURE_LINES - (not is_long)))
    assert len(project.places(house_rules.architecture)) == is_long


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("page.md", "Threads wait. Whoever is first goes on.\n", [1]),
        ("page.md", "- **Who only asks** is no run.\n\n| a | Who asks |\n", [1, 3]),
        ("page.md", "A thread that waits,\nand one that does not. Who\nwaits is served.\n", [2]),
        ("page.rs", "//! A queue.\n//!\n//! Who waits is served.\n", [3]),
        ("page.rs", "//! A queue.\nstruct A; // Who waits.\nstruct B; // Asks who?\n", [2]),
        ("page.py", '"""A queue.\n\nWhoever waits is served.\n"""\n# Who else?\nx = 1  # Who waits.\n', [3, 6]),
        ("page.py", 'x = 1\n"""Who waits."""\n', [2]),
        ("script", "#!/usr/bin/env bash\n# Who waits is served.\n", [2]),
    ],
)
def test_a_sentence_has_a_subject(project: Project, name: str, text: str, lines: list[int]) -> None:
    project.write(name, text)
    assert project.places(house_rules.subjects) == [f"{name}:{line}" for line in lines]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("page.md", "Who may release\na.lock? Its holder: the thread who has it.\n"),
        ("page.md", '## Who is next\n\nWrite no "Who waits is served.", nor `Who waits`.\n\n    Who waits\n'),
        ("page.md", "```\nWho waits is served.\n```\n"),
        ("docs/results/page.md", "Who waits is served.\n"),
        ("page.rs", '//! A queue: see [`Who`].\nconst TEXT: &str = "Who waits.";\nenum Who { Thread }\n'),
        ("page.py", '"""A queue."""\nx = "Who waits."\n'),
        ("data", "Who waits is served.\n"),
    ],
)
def test_questions_headings_and_quotations_are_left_alone(project: Project, name: str, text: str) -> None:
    project.write(name, text)
    assert project.places(house_rules.subjects) == []


def test_a_named_path_exists(project: Project) -> None:
    project.write(
        "crates/core/src/word.rs", "//! A word. See tests/model.rs, crates/core/src and crates/core/gone.rs.\n"
    )
    project.write("crates/core/tests/model.rs", "//! A model, in crates/core/tests/*.rs but not in tests/loom.rs.\n")
    project.write("page.md", "| `crates/core/` | `bench/gone` |\n|---|---|\n\nand\nscripts/gone_*.\n")
    assert project.places(house_rules.paths) == [
        "crates/core/src/word.rs:1",
        "crates/core/tests/model.rs:1",
        "page.md:1",
        "page.md:5",
    ]


def test_paths_in_code_placeholders_and_other_places_are_left_alone(project: Project) -> None:
    project.write("code.py", '"""Code."""\nx = "crates/gone.rs"\n')
    project.write("page.md", "crates/NAME{s}, docs/<page>, /tmp/bench/x, ../docs/x, tests/…\n\n    python/gone.py\n")
    assert project.places(house_rules.paths) == []


def test_an_ordering_has_a_note(project: Project) -> None:
    project.write(
        "crates/core/src/word.rs",
        """\
        //! A word.
        use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Release};
        pub use crate::shim::{
            Ordering::SeqCst,
        };
        fn noted(word: &AtomicU32) {
            // ORDERING: pairs with the Acquire of `bare`.
            word.store(1, Release);
            word.fetch_add(1, Ordering::AcqRel); // ORDERING: the same.
        }
        fn bare(word: &AtomicU32) {
            // Acquire it.
            let text = "Release";
            word.load(Ordering::Relaxed);
            let step = Step::Acquire(3);



            word.load(Acquire);
            word.load(Ordering::SeqCst);
        }
        #[cfg(test)]
        mod tests {
            fn exempt(word: &AtomicU32) {
                word.load(Acquire);
            }
        }
        """,
    )
    assert project.places(house_rules.orderings) == [f"crates/core/src/word.rs:{line}" for line in (19, 20)]


def test_a_note_is_near_its_ordering(project: Project) -> None:
    for distance in (house_rules.NOTE_LINES, house_rules.NOTE_LINES + 1):
        gap = "\n" * distance
        project.write(f"crates/core/src/at_{distance}.rs", f"//! A word.\n// ORDERING: noted.{gap}load(Acquire);\n")
    assert project.places(house_rules.orderings) == ["crates/core/src/at_7.rs:9"]


def test_tests_need_no_note_and_do_not_hide_other_code(project: Project) -> None:
    for name in ("tests/word.rs", "src/queue/tests.rs", "benches/src.rs"):
        project.write(f"crates/core/{name}", "//! Tests.\nfn test() { load(Acquire); }\n")
    project.write("crates/core/src/queue/mod.rs", "//! A queue.\n#[cfg(test)]\nmod tests;\nfn f() { load(Acquire); }\n")
    assert project.places(house_rules.orderings) == ["crates/core/src/queue/mod.rs:4"]


def test_the_rules_are_all_called(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def angry(_files: list[Path]) -> house_rules.Complaints:
        yield "a.py: wrong"

    monkeypatch.setattr(house_rules, "RULES", [angry, angry])
    monkeypatch.setattr(house_rules, "tracked", list)  # git need not be there
    assert house_rules.main() == 1
    assert capsys.readouterr().out.count("error: a.py: wrong\n") == 2
