"""Quick learning: where calls have to pay, one learning run is made, and the server compares its values with it.

Every value that a worker shows is nonetheless the one of a plain run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

SHOWN = "print(repr(mod.VALUE), '_unsnarl_warm' in sys.modules)\n"


@pytest.fixture(autouse=True)
def paid(rig: Rig) -> None:
    """Let two calls pay for a start; with `any`, the imports are watched twice at once."""
    rig.env["UNSNARL_WARM_SPEND"] = "1000000"


def script_of(rig: Rig, module: str) -> str:
    """Write a command that prints its module's ``VALUE``, and whether it is warm."""
    (rig.directory / "bin" / "mod.py").write_text(f"import os, sys\n{module}\n")
    return rig.script("who", f"import sys, mod\n{SHOWN}")


def called(rig: Rig, script: str, **options: object) -> tuple[str, bool]:
    value, _, is_warm = rig.warm(script, **options).stdout.decode().strip().rpartition(" ")
    return value, is_warm == "True"


def warmed(rig: Rig, script: str, **options: object) -> str:
    """Call until a worker answers; return its value."""
    until(lambda: called(rig, script, **options)[1])
    value, is_warm = called(rig, script, **options)
    assert is_warm, rig.log()
    return value


def facts(rig: Rig) -> str:
    return "".join(path.read_text() for path in rig.house.glob("*.facts"))


def until_refused(rig: Rig, script: str) -> None:
    """Call until the command was learned in two runs, after the server has found what differs."""

    def is_refused() -> bool:
        rig.warm(script)
        return "differs from run to run" in facts(rig)

    until(is_refused)


def policy() -> int:
    """Return the scheduling policy of the tests; skip where it is another one than the usual."""
    try:
        found = os.sched_getscheduler(0)
    except OSError as problem:
        pytest.skip(f"the scheduling policy cannot be read here: {problem.strerror}")
    if found != os.SCHED_OTHER:
        pytest.skip(f"the tests run with the scheduling policy {found}")
    return found


def test_a_learning_run_that_calls_pay_for_gives_way_to_other_processes(rig: Rig) -> None:
    usual = policy()
    script = script_of(rig, "VALUE = os.sched_getscheduler(0)")
    # The server, which has the usual policy, finds that the learning run had another one.
    until(lambda: bool(rig.warm(script)) and "mod.VALUE differs from run to run" in rig.log())
    assert warmed(rig, script) == str(usual)


def test_a_learning_run_that_a_user_waits_for_has_the_usual_priority(rig: Rig) -> None:
    usual = policy()
    script = script_of(rig, "VALUE = os.sched_getscheduler(0)")
    rig.start(script)
    assert "differs from run to run" not in rig.log()
    assert warmed(rig, script) == str(usual)


def test_the_server_makes_the_second_run(rig: Rig) -> None:
    script = script_of(rig, "import uuid\nVALUE = (uuid.uuid4().hex)\nPID = os.getpid()")
    seen = {warmed(rig, script) for _ in range(3)}
    assert len(seen) == 3
    assert "\tVALUE\tuuid4\n" in facts(rig)
    assert "\tPID\tgetpid\n" in facts(rig)
    assert "unproven" not in facts(rig)
    assert not list(rig.house.glob("*.values"))


def test_a_value_without_a_recipe_is_never_shared(rig: Rig) -> None:
    script = script_of(rig, "import random\nVALUE = random.random()")
    until_refused(rig, script)
    seen = [called(rig, script) for _ in range(4)]
    assert len({value for value, _ in seen}) == 4  # the module is left to the runs
    assert "mod.VALUE differs from run to run" in rig.log()


def test_a_decision_by_the_number_of_arguments_is_noticed(rig: Rig) -> None:
    script = script_of(rig, "VALUE = len(sys.argv)")
    until_refused(rig, script)
    for _ in range(3):  # the module is left to the runs, by a server as soon as there is one
        assert called(rig, script)[0] == "1"
        assert rig.warm(script, "a", "b").stdout.startswith(b"3 ")


def test_the_order_in_a_set_is_the_same_in_both_runs(rig: Rig) -> None:
    script = script_of(rig, "VALUE = '|'.join({str(n) for n in range(50)})")
    assert len(warmed(rig, script)) > 50
    assert "differs" not in rig.log()


def test_the_seed_of_the_comparison_is_not_seen(rig: Rig) -> None:
    script = script_of(rig, "VALUE = (os.environ.get('PYTHONHASHSEED'), sys.flags.hash_randomization)")
    assert warmed(rig, script) == "(None, 1)"
    assert "\nseed\t" in facts(rig)


def test_the_mask_is_the_callers(rig: Rig) -> None:
    script = script_of(rig, "VALUE = os.umask(0)\nos.umask(VALUE)")
    assert warmed(rig, script) == rig.plain(script).stdout.decode().split()[0]
    assert "differs" not in rig.log()


def test_a_kept_variable_is_found_out_with_its_second_value(rig: Rig) -> None:
    script = script_of(rig, "VALUE = os.environ.get('KEPT')")
    assert warmed(rig, script, env=rig.env | {"KEPT": "/one"}) == "'/one'"
    assert "doubtful" in facts(rig)
    assert warmed(rig, script, env=rig.env | {"KEPT": "/two"}) == "'/two'"
    assert "doubtful" not in facts(rig)
    for value in ("/one", "/three"):
        assert warmed(rig, script, env=rig.env | {"KEPT": value}) == repr(value)
    until(lambda: len(rig.servers()) == 1)


def test_a_deciding_variable_keeps_its_servers(rig: Rig) -> None:
    script = script_of(rig, "VALUE = os.environ.get('DECIDES') == 'secret'")
    assert warmed(rig, script, env=rig.env | {"DECIDES": "no"}) == "False"
    assert warmed(rig, script, env=rig.env | {"DECIDES": "secret"}) == "True"
    assert warmed(rig, script, env=rig.env | {"DECIDES": "no"}) == "False"


def test_files_beside_a_directory_that_is_only_read_end_no_server(rig: Rig) -> None:
    script = script_of(rig, "VALUE = os.path.abspath(os.getcwd())")
    here, there = rig.directory / "work", rig.directory / "there"
    there.mkdir()
    assert warmed(rig, script, cwd=here) == repr(str(here))
    for name in ("new.py", "results_1"):
        (here / name).write_text("")
        assert called(rig, script, cwd=here) == (repr(str(here)), True)
    assert warmed(rig, script, cwd=there) == repr(str(there))
    assert warmed(rig, script, cwd=here) == repr(str(here))
    assert "doubtful" not in facts(rig)


@pytest.mark.parametrize(
    "made",
    [
        "os.path.exists(os.path.join(os.getcwd(), 'marker'))",
        "os.path.exists('marker')",
        "'marker' in os.listdir()",
        "'marker' in os.listdir(os.getcwd())",
    ],
)
def test_what_is_looked_up_in_the_directory_counts(rig: Rig, made: str) -> None:
    script = script_of(rig, f"VALUE = {made}")
    work, there = rig.directory / "work", rig.directory / "there"
    there.mkdir()
    assert warmed(rig, script) == "False"
    (work / "marker").write_text("")
    assert called(rig, script)[0] == "True"
    assert warmed(rig, script) == "True"
    assert warmed(rig, script, cwd=there) == "False"
    (there / "marker").write_text("")
    assert called(rig, script, cwd=there)[0] == "True"


def test_names_that_no_import_asked_for_end_no_server(rig: Rig) -> None:
    settings = "class Settings:\n    def __init__(self):\n        self.sources = (Path(os.getcwd()) / 'src').resolve()"
    script = script_of(rig, f"from pathlib import Path\n{settings}\nMINE = Settings()\nVALUE = str(MINE.sources)")
    work, there = rig.directory / "work", rig.directory / "there"
    there.mkdir()
    for directory in (work, there):
        assert warmed(rig, script, cwd=directory) == repr(str(directory / "src"))
        for name in ("new.py", "results_1"):
            (directory / name).write_text("")
            assert called(rig, script, cwd=directory) == (repr(str(directory / "src")), True)
            (directory / name).unlink()
        assert called(rig, script, cwd=directory) == (repr(str(directory / "src")), True)
    (work / "src").symlink_to(there)
    assert called(rig, script, cwd=work)[0] == repr(str(there))
