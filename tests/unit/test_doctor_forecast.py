"""The forecast of a pack follows from the measured times alone."""

import marshal
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from unsnarl.doctor import forecast, trial
from unsnarl.doctor.forecast import Command, Forecast, Times
from unsnarl.pack import recorder


@pytest.mark.parametrize(
    ("times", "expected", "saves_ns"),
    [
        (Times([90, 70, 80], [30, 20, 25], [7, 5, 6], [50, 40, 45], [12, 10, 11]), Forecast(55, 6, 34), 95),
        (Times([50], [40], [9], [], []), Forecast(10, 9, 0), 19),  # the command ends without exit functions
        (Times([10], [90], [], [5], [8]), Forecast(-80, 0, -3), 0),  # the pack costs time
        (Times(), Forecast(), 0),
    ],
)
def test_medians_are_summed(times: Times, expected: Forecast, saves_ns: int) -> None:
    assert times.forecast() == expected
    assert expected.saves_ns == saves_ns


class Runs:
    """Stands in for the processes, with invented times and a clock that only they advance."""

    def __init__(self) -> None:
        self.now_ns = 1_000
        self.looked: list[list[tuple[str, list[str] | None]]] = []

    def monotonic_ns(self) -> int:
        return self.now_ns

    def run_command(self, command: Sequence[str], _environment: Mapping[str, str], _limit_s: float) -> trial.Trial:
        if "-c" in command:
            self.looked.append(marshal.loads(Path(command[3]).read_bytes()))
            found_ns = 300 if command[-1] else 1_000
            return trial.Trial(0, 0.1, 0.1, 1, f"of the start-up\n{found_ns}\n")
        notes, rule = command[2:4]
        Path(notes).write_text(f"{0 if rule else 50} {self.now_ns + 100}")
        self.now_ns += 120 if rule else 500
        return trial.Trial(3, 0.1, 0.1, 1, "")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    monkeypatch.setattr(trial, "run_command", runs.run_command)
    monkeypatch.setattr(time, "monotonic_ns", runs.monotonic_ns)
    return runs


@pytest.fixture
def pack(tmp_path: Path) -> str:
    """A pack of a package with a module, and of a module."""
    (tmp_path / "package").mkdir()
    paths = {"package": "package/__init__.py", "package.part": "package/part.py", "alone": "alone.py"}
    for path in paths.values():
        (tmp_path / path).write_text("A = 1\n")
    made = tmp_path / "the.pack"
    made.write_bytes(recorder.build({name: str(tmp_path / path) for name, path in paths.items()}))
    return str(made)


@pytest.mark.parametrize(("stock_s", "attempts"), [(0.1, 3), (5.0, 1)])
def test_each_part_is_measured_without_the_pack_and_with_what_it_does(
    runs: Runs, pack: str, tmp_path: Path, stock_s: float, attempts: int
) -> None:
    found = forecast.measure(Command("script", "/bin/tool", ("x",)), pack, {}, 60, stock_s)
    assert found == Forecast(finding_ns=700, collecting_ns=50, ending_ns=380)
    assert len(runs.looked) == 2 * attempts
    expected = [("package", None), ("package.part", [str(tmp_path / "package")]), ("alone", None)]
    assert runs.looked[0] == expected


def test_real_runs_give_all_times(pack: str, tmp_path: Path) -> None:
    """Measures real processes; asserts nothing about durations, which depend on the machine."""
    script = tmp_path / "tool.py"
    script.write_text("import gc, sys\nimport package.part\ngc.collect()\nsys.exit(len(sys.argv))\n")
    (tmp_path / "package" / "part.py").write_text("kept = [[] for _ in range(100_000)]\n")
    found = forecast.measure(Command("script", str(script), ("x",)), pack, dict(os.environ), 60, 5.0)
    assert found is not None
    assert found.collecting_ns > 0
    assert found.finding_ns != 0
    assert found.ending_ns != 0


@pytest.mark.parametrize(
    "text",
    ["import os; os._exit(0)", "import gc; gc.collect()", "import gc; gc.set_threshold(0); import package.part"],
)
def test_what_leaves_no_note_or_collects_of_its_own_saves_nothing_there(pack: str, tmp_path: Path, text: str) -> None:
    (tmp_path / "package" / "part.py").write_text("import gc\nassert gc.collect(0) is not None\ngc.collect()\n")
    script = tmp_path / "tool.py"
    script.write_text(text)
    found = forecast.measure(Command("script", str(script), ()), pack, dict(os.environ), 60, 5.0)
    assert found is not None
    if "_exit" in text:
        assert found.ending_ns == 0
    assert found.collecting_ns == 0


def test_a_script_is_run_with_the_flags_and_the_path_that_it_is_run_with(pack: str, tmp_path: Path) -> None:
    """A module that only a path without PYTHONSAFEPATH reaches, and variables that ``-E`` ignores."""
    (tmp_path / "colorsys.py").write_text("raise SystemExit('run')\n")
    script, log = tmp_path / "tool.py", tmp_path / "log"
    script.write_text(
        "import colorsys, sys\n"
        f"print(sys.flags.ignore_environment, sys.flags.safe_path, file=open({str(log)!r}, 'a'))\n"
    )
    environment = os.environ | {"PYTHONSAFEPATH": "1"}
    forecast.measure(Command("script", str(script), ()), pack, environment, 60, 5.0)
    (tmp_path / "colorsys.py").unlink()
    forecast.measure(Command("script", str(script), (), ("-E",)), pack, environment, 60, 5.0)
    assert log.read_text() == 2 * "0 True\n" + 2 * "1 False\n"


def test_a_module_is_run_as_one(pack: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "package" / "__main__.py").write_text(
        "import sys\nprint(*sys.argv[1:], __name__, file=open('log', 'w'))\n"
    )
    monkeypatch.chdir(tmp_path)
    assert forecast.measure(Command("module", "package", ("a", "b c")), pack, dict(os.environ), 60, 5.0) is not None
    assert (tmp_path / "log").read_text() == "a b c __main__\n"


def test_a_pack_that_cannot_be_read_gives_no_forecast(pack: str) -> None:
    os.truncate(pack, 30)
    assert forecast.measure(Command("script", sys.executable, ()), pack, dict(os.environ), 60, 5.0) is None
