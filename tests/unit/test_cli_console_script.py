"""The interpreter that the first lines of a script name."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.cli.program import console_script


@pytest.mark.parametrize(
    ("head", "path", "flags"),
    [
        ("#!/venv/bin/python\n", "/venv/bin/python", []),
        ("#!/venv/bin/python", "/venv/bin/python", []),
        ("#! /venv/bin/python3.13  \n", "/venv/bin/python3.13", []),
        ("#!/venv/bin/python\t-sE\n", "/venv/bin/python", ["-sE"]),
        ("#!/venv/bin/python -s -E\n", "/venv/bin/python", ["-s -E"]),
        ("#!/venv/bin/pypy3\n", "/venv/bin/pypy3", []),
        ("#!/bin/sh\n'''exec' /a/b/python \"$0\" \"$@\"\n' '''\n", "/a/b/python", []),
        ("#!/bin/sh\n'''exec' '/a b/python' \"$0\" \"$@\"\n' '''\n", "/a b/python", []),
        ("#!/bin/sh\n'''exec' /a/b/python -I \"$0\" \"$@\"\n' '''\n", "/a/b/python", ["-I"]),
        ("#!/usr/bin/env python-that-nobody-has\n", "python-that-nobody-has", []),
        ("#!/usr/bin/env -S python-that-nobody-has -u\n", "python-that-nobody-has", ["-u"]),
        ("#!/usr/bin/env /venv/bin/python\n", "/venv/bin/python", []),
    ],
)
def test_heads_of_python_scripts(tmp_path: Path, head: str, path: str, flags: list[str]) -> None:
    named = console_script.interpreter_of(str(written(tmp_path, head.encode())))
    assert named is not None
    assert (named.path, named.flags) == (path, flags)


@pytest.mark.parametrize(
    "head",
    [
        "",
        "#!",
        "#!\n",
        "# /venv/bin/python\n",
        "import this\n",
        "#!/bin/sh\n",
        "#!/bin/sh\nexec python\n",
        "#!/bin/bash\n",
        "#!/bin/sh\n'''exec' \n",
        "#!/bin/sh\n'''exec' '\n",
        "#!/usr/bin/env\n",
        "#!/usr/bin/env -S\n",
        "#!/usr/bin/env -S python3 -W 'ignore'\n",
        "#!/usr/bin/env ruby\n",
    ],
)
def test_other_heads(tmp_path: Path, head: str) -> None:
    assert console_script.interpreter_of(str(written(tmp_path, head.encode()))) is None


@given(st.binary(max_size=64))
def test_no_head_is_too_odd(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    directory = tmp_path_factory.mktemp("heads")
    for start in (b"", b"#!", b"#!/usr/bin/env ", b"#!/bin/sh\n'''exec' "):
        console_script.interpreter_of(str(written(directory, start + tail)))


def written(directory: Path, head: bytes) -> Path:
    """Write a script with some first lines."""
    path = directory / "script"
    path.write_bytes(head)
    return path


def test_a_command_is_found_only_if_it_is_executable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    name = "a-command-of-this-test"
    assert console_script.find(name) is None
    path = tmp_path / name
    path.write_text("")
    assert console_script.find(name) is None
    path.chmod(0o755)
    assert console_script.find(name) == str(path)
    assert console_script.find(str(path)) == str(path)
    (tmp_path / "directory").mkdir()
    assert console_script.find("directory") is None
