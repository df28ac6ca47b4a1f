"""The settings that ``unsnarl run`` writes into the environment."""

import contextlib
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl import run_settings
from unsnarl.run_settings import STATS_CHOICES, RunSettings, decode

NAMES = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="="), min_size=1)
PATHS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


def as_tuple(settings: RunSettings) -> tuple[object, ...]:
    return tuple(getattr(settings, name) for name in RunSettings.__slots__)


@given(
    st.builds(
        RunSettings,
        slice_ms=st.none() | st.floats(0.1, 1000),
        batch_share=st.none() | st.floats(0, 0.9),
        kernel_hints=st.booleans(),
        children=st.booleans(),
        stats=st.sampled_from(STATS_CHOICES),
        pack=st.just("") | PATHS,
        main_pid=st.integers(1, 2**22),
        abi=NAMES.filter(lambda name: "prefix" not in name),
        prefix=PATHS,
    )
)
def test_what_was_encoded_is_decoded(settings: RunSettings) -> None:
    assert as_tuple(decode(settings.encode())) == as_tuple(settings)


@given(st.text())
def test_any_other_text_is_refused_or_understood(text: str) -> None:
    with contextlib.suppress(ValueError):
        decode(text)


def test_words_of_a_later_version_are_skipped() -> None:
    settings = RunSettings(stats="all")
    assert as_tuple(decode("colour=blue nonsense " + settings.encode())) == as_tuple(settings)


@pytest.mark.parametrize("word", ["kernel_hints=maybe", "children=", "stats=some", "main_pid=x", "slice_ms=long"])
def test_a_value_that_cannot_be_is_refused(word: str) -> None:
    name = word.partition("=")[0]
    text = RunSettings(slice_ms=1.0).encode()
    broken = " ".join(word if given.startswith(f"{name}=") else given for given in text.split(" "))
    assert broken != text
    with pytest.raises(ValueError, match=r"."):
        decode(broken)


def test_the_defaults_are_this_process() -> None:
    settings = RunSettings()
    assert settings.is_main()
    assert settings.is_for_this_interpreter()
    assert not RunSettings(main_pid=os.getpid() + 1).is_main()
    assert not RunSettings(abi="cpython-27").is_for_this_interpreter()
    assert not RunSettings(prefix="/nowhere").is_for_this_interpreter()
    assert not RunSettings(prefix="\0").is_for_this_interpreter()


def test_a_link_to_the_environment_is_the_environment(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(sys.prefix)
    assert RunSettings(prefix=str(link)).is_for_this_interpreter()


@pytest.mark.parametrize(
    ("stats", "is_main", "prints"),
    [("no", True, False), ("main", True, True), ("main", False, False), ("all", True, True), ("all", False, True)],
)
def test_who_prints_statistics(stats: str, is_main: bool, prints: bool) -> None:
    main_pid = os.getpid() if is_main else os.getpid() + 1
    assert RunSettings(stats=stats, main_pid=main_pid).prints_stats_here() == prints


@pytest.mark.parametrize(("value", "is_off"), [(None, False), ("", False), ("on", False), ("off", True)])
def test_the_kill_switch(monkeypatch: pytest.MonkeyPatch, value: str | None, is_off: bool) -> None:
    monkeypatch.delenv(run_settings.SWITCH, raising=False)
    if value is not None:
        monkeypatch.setenv(run_settings.SWITCH, value)
    assert run_settings.is_switched_off() == is_off
