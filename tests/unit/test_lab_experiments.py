"""The experiments with a measuring function handle the outputs of their programs."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from unsnarl.doctor import warmth
from unsnarl.lab import presence
from unsnarl.lab.experiment import ANYWHERE, Case
from unsnarl.lab.experiments import convoy, micro, startup, storm, web
from unsnarl.lab.running import commands
from unsnarl.lab.running.process import PROGRAMS, LaunchContext, Run, RunFailed, execute
from unsnarl.lab.variants import PACKED, PLAIN, STOCK, WARM
from unsnarl.warm.managing import runtime_directory

LIMIT_S = 60.0
AB = """
Concurrency Level:      10
Failed requests:        0
Requests per second:    10423.39 [#/sec] (mean)
Percentage of the requests served within a certain time (ms)
  50%      1
  99%      4
"""


PERCENTILES = """Percentage served,Time in ms
0,0.366
50,0.680
99,7.561
100,10.236
"""


def test_what_ab_reports() -> None:
    assert web.ab_figures(AB, PERCENTILES) == {"requests_per_s": 10423.39, "p50_ms": 0.68, "p99_ms": 7.561}
    with pytest.raises(RunFailed, match="3 requests failed"):
        web.ab_figures(AB.replace("requests:        0", "requests:        3"), PERCENTILES)
    with pytest.raises(RunFailed, match="12 requests failed"):
        web.ab_figures("Non-2xx responses:      12", PERCENTILES)


@pytest.mark.skipif(shutil.which("ab") is None, reason="ab is not installed")
def test_a_server_is_loaded_by_ab() -> None:
    case = Case("p = 2", ("0", "2", "1"))
    figures = web.measure(Run(web.EXPERIMENT, case, STOCK, sys.executable))
    assert 0 < figures["p50_ms"] <= figures["p99_ms"]


def test_a_server_is_loaded_by_our_own_load(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    case = Case("p = 2", ("0", "2", "2"))
    figures = web.measure(Run(web.EXPERIMENT, case, STOCK, sys.executable))
    assert figures["requests_per_s"] > 0


def test_a_server_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    run = Run(web.EXPERIMENT, Case("p = 1"), STOCK, sys.executable)
    with pytest.raises(RunFailed, match="exit status 1"):
        web.load(1, "1", "0.1", run)


def test_an_echo_thread_beside_another_one() -> None:
    case = Case("1", ("--hogs", "1", "2"))
    figures = convoy.measure(Run(convoy.EXPERIMENT, case, STOCK, sys.executable))
    assert {"requests_per_s", "p50_us", "p99_us", "work_per_s"} <= figures.keys()


def test_what_pyperf_reports() -> None:
    runs = [{"warmups": [[1, 1.0]]}, {"values": [2e-9, 3e-9]}, {"values": [4e-9]}]
    assert micro.figures_of(json.dumps({"benchmarks": [{"runs": runs}]})) == {"time_ns": pytest.approx(3.0)}
    with pytest.raises(RunFailed, match="measured nothing"):
        micro.figures_of(json.dumps({"benchmarks": [{"runs": runs[:1]}]}))


@pytest.mark.parametrize("operation", micro.OPERATIONS)
def test_the_operations_can_be_carried_out(operation: str) -> None:
    for variant in ("stock", "primitives"):
        text = f"{micro.setup_of(operation, variant)}\n{micro.OPERATIONS[operation][1]}"
        execute([sys.executable, "-c", text], Case("").confinement, LIMIT_S)


def test_commands_are_started_and_counted() -> None:
    run = Run(startup.EXPERIMENT, Case("python", ("python -c pass", "2")), PLAIN, sys.executable)
    assert startup.measure(run)["elapsed_ms"] > 0
    run = Run(storm.EXPERIMENT, Case("python", ("python -c pass", "4")), PLAIN, sys.executable)
    assert storm.measure(run)["elapsed_s"] > 0


def test_a_warm_command_that_asks_for_its_directory_and_the_servers_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A command whose imports read the directory, as pip's do, has a server per directory; the user's stay."""
    if presence.command_of(sys.executable, "unsnarl") is None:
        pytest.skip("the command unsnarl is not installed beside this interpreter")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    places: list[Path] = []
    launched = commands.launched

    def note(run: Run, path: str, context: LaunchContext) -> contextlib.AbstractContextManager[list[str]]:
        places.append(Path(context.variables["UNSNARL_WARM_DIR"]))
        return launched(run, path, context)

    monkeypatch.setattr(commands, "launched", note)
    run = Run(storm.EXPERIMENT, Case("pip", ("pip --version", "4")), WARM, sys.executable)
    assert {"elapsed_s", "each_ms", "cpu_s"} <= storm.measure(run).keys()
    assert len(places) == 1
    assert not places[0].exists()
    assert not (tmp_path / "unsnarl").exists()


def test_servers_are_stopped_even_if_the_wait_for_one_is_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    client, words = tmp_path / "client", tmp_path / "words"
    client.write_text(f"#!/bin/sh\necho $2 >> '{words}'\n")
    client.chmod(0o755)
    monkeypatch.setattr(presence, "command_of", lambda *_: str(client))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "await_server", interrupted)
    run = Run(startup.EXPERIMENT, Case("pip", ("pip --version", "2")), WARM, sys.executable)
    with pytest.raises(KeyboardInterrupt):
        startup.measure(run)
    assert words.read_text().split() == ["stop"]


def test_the_processor_time_of_a_server_counts_with_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor time includes the server and its reaped workers, as the kernel accounts them."""
    child = subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    assert child.returncode == 0
    found = [runtime_directory.Server("stem", os.getpid(), {}), runtime_directory.Server("gone", 2**22 + 1, {})]

    def servers(_directory: str) -> list[runtime_directory.Server]:
        return found

    monkeypatch.setattr(runtime_directory, "servers", servers)
    (time_s,) = commands.server_times(LaunchContext("/", {"UNSNARL_WARM_DIR": "/nowhere"})).values()
    used = os.times()
    assert time_s == pytest.approx(sum(used[:4]), abs=0.2)
    assert used.children_user > 0


def test_a_storm_that_is_interrupted_starts_nothing_more(tmp_path: Path) -> None:
    """The running commands, one per core, are killed, and no other command starts."""
    hanging = [sys.executable, "-c", f"import os, time; os.mkdir('{tmp_path}/' + str(os.getpid())); time.sleep(1000)"]

    def act() -> None:
        execute(hanging, ANYWHERE, LIMIT_S * 10)

    def interrupt_once_running() -> None:
        while len(list(tmp_path.iterdir())) < cores:
            threading.Event().wait(0.01)
        signal.pthread_kill(main, signal.SIGINT)

    cores, main = len(os.sched_getaffinity(0)), threading.get_ident()
    watcher = threading.Thread(target=interrupt_once_running)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        storm.repeat(act, 50 * cores)
    watcher.join()
    assert len(list(tmp_path.iterdir())) == cores


def test_a_start_whose_server_is_just_being_replaced_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The client reports once that no server took the command, which has not run then."""
    client, words = tmp_path / "client", tmp_path / "words"
    client.write_text(
        f"#!/bin/sh\necho $2 >> '{words}'\n"
        f"[ $2 = run ] && mkdir '{tmp_path}/first' 2>/dev/null && echo not warm >&2 && exit {warmth.NOT_WARM}\n"
        "exit 0\n"
    )
    client.chmod(0o755)
    monkeypatch.setattr(presence, "command_of", lambda *_: str(client))
    settled: list[Path] = []
    monkeypatch.setattr(commands, "wait_until_learned", settled.append)
    run = Run(startup.EXPERIMENT, Case("pip", ("pip --version", "2")), WARM, sys.executable)
    assert startup.measure(run)["elapsed_ms"] > 0
    learning = ["start", "run", "start", *["run"] * commands.LEARNING_RUNS]
    assert words.read_text().split() == [*learning, "run", "run", "stop"]
    assert len(settled) == commands.LEARNING_RUNS
    (tmp_path / "first").rmdir()
    words.write_text("")
    run = Run(storm.EXPERIMENT, Case("pip", ("pip --version", "1")), WARM, sys.executable)
    assert storm.measure(run)["elapsed_s"] > 0
    assert words.read_text().split() == [*learning, "run", "stop"]


def test_a_warm_command_is_measured_when_its_server_has_learned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = [tmp_path / name for name in ("command.news", "learn-1", "key.sock")]
    looks: list[float] = []

    def look(pause_s: float) -> None:
        looks.append(pause_s)
        if len(looks) == 2:
            marks[1].touch()
        elif len(looks) == 4:
            marks[0].unlink()
            marks[2].touch()
        elif len(looks) == 6:
            marks[1].unlink()

    marks[0].touch()
    monkeypatch.setattr("unsnarl.lab.running.commands.time.sleep", look)
    commands.wait_until_learned(tmp_path)
    assert len(looks) == 5 + commands.QUIET_POLLS


def test_a_command_that_is_not_there() -> None:
    with pytest.raises(RunFailed, match="no-such-command is not installed"):
        commands.located(sys.executable, "no-such-command")
    for variant in (WARM, PACKED):
        run = Run(startup.EXPERIMENT, Case("nothing"), variant, "/nowhere/python")
        with pytest.raises(RunFailed), commands.prepared(run, ("python", "-c", "pass")):
            raise AssertionError("the command is not there")


@pytest.mark.parametrize("program", ["start", "mutex", "semaphore"])
@pytest.mark.parametrize("library", ["threading", "unsnarl"])
def test_the_square_programs_end(program: str, library: str) -> None:
    path = str(PROGRAMS / "squares.py")
    command = [sys.executable, path, program, "8", "--library", library]
    assert json.loads(execute(command, Case("").confinement, LIMIT_S).stdout)["elapsed_s"] > 0


@pytest.mark.parametrize("way", ["lock", "condition"])
@pytest.mark.parametrize("library", ["threading", "unsnarl"])
def test_pairs_hand_over(way: str, library: str) -> None:
    command = [sys.executable, str(PROGRAMS / "pairs.py"), way, "--seconds", "0.1", "--library", library, "--hogs", "1"]
    figures = json.loads(execute(command, Case("").confinement, LIMIT_S).stdout)
    assert figures["handovers_per_s"] > 0


@pytest.mark.parametrize("program", ["start", "mutex"])
def test_the_square_programs_of_processes_end(program: str) -> None:
    command = [sys.executable, str(PROGRAMS / "processes.py"), program, "4"]
    assert json.loads(execute(command, Case("").confinement, LIMIT_S).stdout)["elapsed_s"] > 0


def test_programs_for_old_versions_have_no_new_syntax() -> None:
    for name in ("import_loop.py", "queue_pair.py"):
        text = Path(PROGRAMS / name).read_text(encoding="ascii")
        assert "->" not in text.replace("# type: () -> None", "")
        assert 'f"' not in text
