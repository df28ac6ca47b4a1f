"""The reference shows the help as the commands print it, and names every verb and option."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from unsnarl.cli import VERBS

if TYPE_CHECKING:
    from tests.conftest import Programs

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


@pytest.mark.parametrize("verb", ["", *(verb for verb in VERBS if verb != "demo")])
def test_the_reference_shows_the_help(programs: "Programs", verb: str) -> None:
    shown = programs.unsnarl(*verb.split(), "--help").stdout.decode()
    assert f"```text\n{shown}```" in REFERENCE.read_text(encoding="utf-8")


def test_the_reference_has_every_verb_and_option(programs: "Programs") -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    for verb in VERBS:
        assert re.search(rf"^## `unsnarl {verb}\b", text, re.MULTILINE), verb
    for option in re.findall(r"--[a-z-]+", programs.unsnarl("run", "--help").stdout.decode()):
        assert option in text
