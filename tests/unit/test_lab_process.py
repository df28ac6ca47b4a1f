"""A run is one process, with its figures or the reason why there are none."""

import json
import os
import select
import subprocess
import sys
from pathlib import Path

import pytest

from unsnarl.lab import presence
from unsnarl.lab.experiment import ANYWHERE, ONE_CORE, Case, Experiment, Figure, Variant
from unsnarl.lab.programs import __file__ as programs_file
from unsnarl.lab.running import runner
from unsnarl.lab.running.child import Child
from unsnarl.lab.running.process import Run, RunFailed, confined, count_calls, execute, measure, printed_figures
from unsnarl.lab.variants import GREEN, INTERVAL, SCHEDULER, STOCK

CASE = Case("a case")
LIMIT_S = 60.0


def python(text: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", text]


def experiment_of(variant: Variant, program: str = "import_loop.py") -> Experiment:
    return Experiment(
        "one", "nowhere", "One", "Why?", program, (Figure("elapsed_s", "time"),), (variant,), (CASE,), (CASE,)
    )


def run_of(variant: Variant, *arguments: str, program: str = "import_loop.py") -> Run:
    return Run(experiment_of(variant, program), CASE._replace(arguments=arguments), variant, sys.executable)


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (python("import sys; sys.exit(3)"), "exit status 3"),
        (python("raise ValueError('its last words')"), "exit status 1: ValueError: its last words"),
        (python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), "ended by SIGKILL"),
        (["/nowhere/python"], "/nowhere/python cannot be run: No such file or directory"),
    ],
)
def test_a_process_that_fails(command: list[str], reason: str) -> None:
    with pytest.raises(RunFailed) as failure:
        execute(command, ANYWHERE, LIMIT_S)
    assert str(failure.value) == reason


def test_a_process_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    pid, unfinished = tmp_path / "pid", tmp_path / "unfinished"
    text = f"""
import os, time
if os.fork() == 0:
    with open({str(unfinished)!r}, "w") as file: file.write(str(os.getpid()))
    os.rename({str(unfinished)!r}, {str(pid)!r})
time.sleep(1000)
"""
    for limit_s in (4.0, 40.0):
        with pytest.raises(RunFailed, match=f"no result within {limit_s:g} s"):
            execute(python(text), ANYWHERE, limit_s)
        if pid.exists():  # else the busy machine did not start it in time
            break
    try:
        child = os.pidfd_open(int(pid.read_text()))
    except ProcessLookupError:
        return
    try:
        assert select.select([child], [], [], LIMIT_S)[0], "the child outlived its parent"
    finally:
        os.close(child)


def test_times_and_output_are_kept() -> None:
    done = execute(python("print('x' * 100_000); sum(range(10_000_000))"), ANYWHERE, LIMIT_S)
    assert len(done.stdout) == 100_001
    assert done.elapsed_s > 0
    assert done.user_s > 0


def test_the_environment_does_not_steer() -> None:
    os.environ["UNSNARL"] = os.environ["PYTHONNOUSERSITE"] = "off"
    try:
        text = "import os; print([name for name in os.environ if name.startswith(('UNSNARL', 'PYTHON'))])"
        assert execute(python(text), ANYWHERE, LIMIT_S).stdout == "[]\n"
    finally:
        del os.environ["UNSNARL"], os.environ["PYTHONNOUSERSITE"]


def test_confinement_to_one_core() -> None:
    text = "import os; print(len(os.sched_getaffinity(0)))"
    assert execute(python(text), ONE_CORE, LIMIT_S).stdout == "1\n"
    assert confined(["x"], ANYWHERE) == ["x"]


@pytest.mark.parametrize("text", ["", "no figures", "{", "3", "[]"])
def test_no_figures(text: str) -> None:
    with pytest.raises(RunFailed, match="no figures"):
        printed_figures(text)


def test_a_program_is_measured() -> None:
    figures = measure(run_of(STOCK, "1000"))
    assert {"elapsed_s", "per_import_ns", "user_s", "system_s"} <= figures.keys()


def test_what_a_variant_is() -> None:
    program = str(Path(programs_file).parent / "import_loop.py")
    unsnarl = [sys.executable, "-P", "-m", "unsnarl", "run"]
    assert run_of(STOCK, "5").program() == [sys.executable, program, "5"]
    assert run_of(INTERVAL, "5").program() == [sys.executable, program, "5", "--switch-interval", "0.0005"]
    assert run_of(SCHEDULER, "5").program() == [*unsnarl, program, "5"]
    assert run_of(GREEN, "5").program() == [*unsnarl, "--green", program, "5"]


def test_system_calls_are_counted_by_name() -> None:
    if (reason := presence.reason_against_strace()) is not None:
        pytest.skip(reason)
    figures = count_calls(python("import os\nfor _ in range(50): os.getppid()"), CASE)
    assert figures["calls.getppid"] == 50
    assert figures["calls.all"] == sum(n for name, n in figures.items() if name != "calls.all")
    assert "calls.futex" in figures


def test_a_child_that_breaks_down_is_a_failed_run() -> None:
    with pytest.raises(RunFailed, match="the server ended early"), Child("server", python(""), ANYWHERE) as child:
        child.receive(LIMIT_S)
    with pytest.raises(RunFailed, match="cannot be started"):
        Child("server", ["/nowhere/python"], ANYWHERE)


def test_a_child_ends_when_this_process_is_killed(tmp_path: Path) -> None:
    """A web server with a CPU-bound thread would run for ever."""
    serving = python("import os, time; print(os.getpid(), flush=True); time.sleep(1000)")
    text = f"""
from unsnarl.lab.running.child import Child
from unsnarl.lab.experiment import ANYWHERE
with Child("server", {serving!r}, ANYWHERE) as child:
    print(child.receive({LIMIT_S}), flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=tmp_path
    ) as lab:
        assert lab.stdout is not None
        server = os.pidfd_open(int(lab.stdout.readline()))
        lab.kill()
    try:
        assert select.select([server], [], [], LIMIT_S)[0], "the server outlived the laboratory"
    finally:
        os.close(server)


def test_a_child_answers_in_json() -> None:
    text = "import json\nwhile line := input(): print(json.dumps({'said': line}), flush=True)"
    with Child("echo", python(text), ANYWHERE) as child:
        assert child.request("word", LIMIT_S) == {"said": "word"}


def test_what_is_not_there_is_told_with_a_reason() -> None:
    missing = STOCK._replace(needs=("unsnarl", "ipc", "aiologic"))
    reasons = runner.absent_variants(experiment_of(missing), "/nowhere/python")
    assert reasons == {"stock": "unsnarl is not installed for the measured interpreter"}
    assert presence.reasons_in_words({"a": "gone", "b": "late", "c": "gone"}) == ["a, c: gone", "b: late"]
    assert presence.command_of(sys.executable, "no-such-command") is None


def test_the_programs_import_nothing_of_unsnarl() -> None:
    text = """
import json, runpy, sys
sys.argv = [sys.argv[1], *sys.argv[2:]]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
try: runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit: pass
print(json.dumps([name for name in sys.modules if name.startswith("unsnarl")]))
"""
    program = str(Path(programs_file).parent / "efficiency.py")
    done = execute([sys.executable, "-c", text, program, "--seconds", "0.02"], ANYWHERE, LIMIT_S)
    assert json.loads(done.stdout.splitlines()[-1]) == []
