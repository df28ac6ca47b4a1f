"""``scripts/crater``: the manifest, what reports come to, and what counts as a difference."""

from __future__ import annotations

import contextlib
import os
import pkgutil
import shutil
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bench.crater import manifest, outcomes, preparation, running, services, trial
from bench.crater.__main__ import main, result_of
from bench.crater.manifest import ManifestError, Suite
from bench.crater.outcomes import Difference

ROOT = Path(__file__).resolve().parents[2]

REPORT = """<testsuites><testsuite>
<testcase classname="tests.test_a.TestIt" name="test_one[x]" file="tests/test_a.py"/>
<testcase classname="tests.test_a" name="test_two" file="tests/test_a.py"><failure message="no"/></testcase>
<testcase classname="tests.test_a" name="test_two" file="tests/test_a.py"><error message="teardown"/></testcase>
<testcase classname="tests.test_a" name="test_three" file="tests/test_a.py"><skipped/></testcase>
<testcase name="test.test_queue.QueueTest.test_put"/>
</testsuite></testsuites>"""


def test_the_manifest_is_valid_and_has_a_chosen_tenth() -> None:
    suites = manifest.read()
    assert len(suites) >= 40
    assert len(suites) / 11 < len([suite for suite in suites if suite.chosen]) < len(suites) / 9


def test_each_module_of_this_interpreters_own_tests_is_in_one_suite_or_left_out() -> None:
    places = [name for suite in manifest.read() if suite.source == "cpython" for name in suite.tests]
    places += manifest.left_out()
    assert sorted(name for name in set(places) if places.count(name) > 1) == []
    tests = pytest.importorskip("test", reason="this interpreter comes without its own tests")
    found = [module.name for module in pkgutil.iter_modules(tests.__path__)]
    assert {name for name in found if name.startswith("test_")} <= set(places)


def test_a_module_that_an_interpreter_does_not_have_is_not_run_there(tmp_path: Path) -> None:
    suite = Suite("cpython-thing", tests=("test_grammar", "test_no_such_module"), source="cpython")
    folder = tmp_path / "test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "test_grammar.py").write_text("raise SystemExit('a module that is only looked for is imported')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    assert preparation.of_interpreter(suite, python).tests == ("test_grammar",)
    none = Suite("cpython-thing", tests=("test_no_such_module",), source="cpython")
    with pytest.raises(preparation.Unprepared, match="none of its modules"):
        preparation.of_interpreter(none, python)
    other = Suite("thing", "1", ("tests",))
    assert preparation.of_interpreter(other, python) is other


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[suite]]\nversion = '1'", "no name"),
        ("[[suite]]\nname = 'a'\nversion = '1'", "a: no tests"),
        ("[[suite]]\nname = 'a'\ntests = ['t']", "a: no version"),
        ("[[suite]]\nname = 'a'\nversion = '1'\ntests = ['t']\nsource = 'web'", "a: the source is one of"),
        ("[[suite]]\nname = 'a'\nversion = '1'\ntests = ['t']\nlimits = 1", "a: unknown key 'limits'"),
        ("[[suite]]\nname = 'a'\nversion = '1'\ntests = ['t']\nsource = 'git'\ntag = '1'", "a: a suite has a repo"),
        ("[[suite]]\nname = 'a'\nversion = '1'\ntests = ['t']\ntag = '1'", "a: a suite has a repository and a tag"),
        ("[[suite]]\nname = 'a'\nversion = '1'\ntests = ['t']\n" * 2, "'a' twice"),
        ("[[suite]", "manifest.toml"),
    ],
)
def test_a_wrong_manifest_names_the_entry(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "manifest.toml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=said):
        manifest.read(path)


def test_a_report_is_read_by_node_id_and_the_worse_outcome_counts() -> None:
    assert outcomes.read(REPORT) == {
        "tests/test_a.py::TestIt::test_one[x]": "passed",
        "tests/test_a.py::test_two": "failed",
        "tests/test_a.py::test_three": "skipped",
        "test.test_queue.QueueTest.test_put": "passed",
    }
    with pytest.raises(ValueError, match="no element found"):
        outcomes.read("")


SAME_NAMES = """<testsuites><testsuite>
<testcase classname="test.a_test.A" name="test_x" file="../venv/lib/python3.13/site-packages/thing/test/a_test.py"/>
<testcase classname="test.a_test.B" name="test_x" file="../venv/lib/python3.13/site-packages/thing/test/a_test.py">
<failure/></testcase>
<testcase classname="test.c_test.C" name="test_m" file="../venv/lib/python3.13/site-packages/thing/base.py"/>
<testcase classname="test.b_test.D" name="test_m" file="../venv/lib/python3.13/site-packages/thing/base.py"/>
<testcase classname="test.c_test" name="test_f" file="../venv/lib/python3.13/site-packages/thing/test/c_test.py"/>
<testcase classname="test.a_test.A" name="test_x" file="../venv/lib/python3.13/site-packages/other/test/a_test.py"/>
<testcase classname=".E" name="test_x" file="tests/test_one.py"/>
<testcase classname="" name="test_f" file="tests/test_one.py"/>
</testsuite></testsuites>"""


def test_a_skipped_subtest_of_cpython_is_its_test() -> None:
    names = [
        "test.test_a.A.test_b (parse=&lt;function f at 0x7f0e8&gt;)",
        "test.test_a.A.test_c [a (b)] (i=1)",
        "test_d (x)",
    ]
    cases = "".join(f'<testcase name="{name}" result="completed"><skipped/></testcase>' for name in names)
    outcome = outcomes.read(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert outcome == dict.fromkeys(["test.test_a.A.test_b", "test.test_a.A.test_c", "test_d (x)"], "skipped")


def test_a_test_of_cpython_whose_subtests_fail_is_a_failed_one() -> None:
    cases = '<testcase/><testcase name="test.test_a.A.test_b" status="run" result="completed"/><testcase/>'
    made = outcomes.read(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert made == {"?": "failed", "test.test_a.A.test_b": "passed", "? 2": "failed"}


def test_an_expected_failure_of_cpython_is_skipped_and_a_success_in_its_place_failed() -> None:
    parts = {
        "a": "<output><item/></output>",
        "b": "<outcome>UNEXPECTED_SUCCESS</outcome>",
        "c": "<system-out>x</system-out>",
    }
    cases = "".join(f'<testcase name="{name}" result="completed">{part}</testcase>' for name, part in parts.items())
    made = outcomes.read(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert made == {"a": "skipped", "b": "failed", "c": "passed"}


def test_tests_of_the_same_name_in_other_classes_are_others() -> None:
    """A failure that the suite knows must not hide one that it does not."""
    file = "../venv/lib/python3.13/site-packages/thing/test/a_test.py"
    assert outcomes.read(SAME_NAMES) == {
        f"{file}::A::test_x": "passed",
        f"{file}::B::test_x": "failed",
        f"{file.replace('a_test', 'c_test')}::C::test_m": "passed",  # inherited, so its file is another one
        "test.b_test.D::test_m": "passed",  # of a file in which no test is written
        f"{file.replace('a_test', 'c_test')}::test_f": "passed",
        f"{file.replace('thing', 'other')}::A::test_x": "passed",
        "tests/test_one.py::E::test_x": "passed",
        "tests/test_one.py::test_f": "passed",
    }


def test_flaky_tests_do_not_differ_and_an_absent_test_does() -> None:
    first = {"a": "passed", "b": "passed", "c": "failed"}
    assert outcomes.flaky(first, {"a": "passed", "b": "failed", "c": "failed"}) == ["b"]
    found = outcomes.differences(first, "way", {"a": "failed", "b": "failed", "d": "passed"}, ["b"])
    assert found == [
        Difference("a", "way", "passed", "failed"),
        Difference("c", "way", "failed", "absent"),
        Difference("d", "way", "absent", "passed"),
    ]


@pytest.mark.parametrize(
    ("plain", "others", "verdict"),
    [
        (["passed", "passed"], ["failed", "failed"], "differs"),
        (["passed", "passed"], ["failed", "passed"], "differs"),
        (["passed", "passed"], ["passed", "passed"], "did not happen again"),
        (["passed", "failed"], ["failed", "failed"], "flaky"),
        (["absent", "absent"], ["passed", "passed"], "differs"),
    ],
)
def test_a_difference_is_judged_by_repetition(plain: list[str], others: list[str], verdict: str) -> None:
    one = Difference("a", "unsnarl run", "passed", "failed")
    assert trial.verdict_of(one, {trial.PLAIN: plain, "unsnarl run": others}) == verdict


def test_a_crash_and_a_hang_are_outcomes() -> None:
    assert running.ending(-11, 60) == "ended by SIGSEGV"
    assert running.ending(None, 60) == "no end after 60 s"
    assert running.ending(1, 60) == "reported"
    assert running.ending(3, 60) == "status 3"


def test_a_suite_runs_in_each_way_with_the_same_words(tmp_path: Path) -> None:
    suite = Suite("thing", "1", ("tests",), without={"tests/a.py::b": "needs a network"})
    made = running.words(suite, tmp_path / "report.xml")
    assert made[:2] == ["-m", "pytest"]
    assert "--deselect=tests/a.py::b" in made
    assert made[-1] == "tests"
    assert running.words(suite, tmp_path, ["tests/a.py::c"])[-1] == "tests/a.py::c"


def test_a_test_of_cpython_is_left_out_in_each_way(tmp_path: Path) -> None:
    suite = Suite("cpython-thing", "", ("test_thing",), source="cpython", without={"test.test_thing.A.test_b": "hangs"})
    made = running.words(suite, tmp_path / "report.xml")
    assert made[-3:] == ["-i", "test.test_thing.A.test_b", "test_thing"]


def test_a_test_that_runs_alone_keeps_the_options_of_its_suite(tmp_path: Path) -> None:
    suite = Suite("thing", "1", tests=("tests",), options=("-p", "thing.plugin"))
    made = running.words(suite, tmp_path / "report.xml", ["tests/a.py::c"])
    assert made[-3:] == ["-p", "thing.plugin", "tests/a.py::c"]


def test_one_test_of_an_installed_package_has_the_same_name_when_it_runs_alone(tmp_path: Path) -> None:
    package, empty = tmp_path / "site-packages" / "thing_crater", tmp_path / "empty"
    for folder in (package, empty):
        folder.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "test_it.py").write_text("def test_it(): pass\n")
    (tmp_path / "site-packages" / "conftest.py").write_text("")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={package.parent} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    suite = Suite("thing", "1", ("--pyargs", "thing_crater"), source="wheel", limit_s=60)
    whole = running.run(suite, "plain", python, empty).outcomes
    (name,) = whole.keys() - {outcomes.THE_RUN}
    assert running.run(suite, "plain", python, empty, [name]).outcomes == whole


def test_a_suite_has_its_variables_in_each_run(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import os\ndef test_it(): assert os.environ['THING'] == 'tried'\n")
    suite = Suite("thing", "1", ("test_it.py",), variables={"THING": "tried"}, limit_s=60)
    made = running.run(suite, "plain", Path(sys.executable), tmp_path).outcomes
    assert made == {"test_it.py::test_it": "passed", outcomes.THE_RUN: "reported"}


def test_a_suite_has_the_variables_of_its_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def server(name: str) -> Generator[dict[str, str]]:
        yield {"SERVER": name}

    def prepared(*_: object) -> tuple[Path, Path]:
        return tmp_path, tmp_path

    def carried_out(suite: Suite, *_: object) -> dict[str, Any]:
        return {"given": suite.variables}

    monkeypatch.setattr(services, "running", server)
    monkeypatch.setattr(preparation, "prepare", prepared)
    monkeypatch.setattr(trial, "carry_out", carried_out)
    wheel = tmp_path / "unsnarl-1.2.3-cp313-cp313-linux_x86_64.whl"
    wheel.write_bytes(b"")
    suite = Suite("thing", "1", ("tests",), service="postgres", variables={"THING": "tried"})
    made = result_of(suite, tmp_path, wheel, sys.executable, "3.13.0")
    assert made["given"] == {"THING": "tried", "SERVER": "postgres"}


def test_a_service_that_nobody_knows_leaves_the_suite_out() -> None:
    with (
        pytest.raises(preparation.Unprepared, match="no way here to start 'oracle'"),
        services.running("oracle"),
    ):
        raise AssertionError


def test_postgres_has_the_database_and_ends_with_the_context() -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("PostgreSQL's client is not installed")
    with contextlib.ExitStack() as first:
        try:
            variables = first.enter_context(services.running("postgres"))
        except preparation.Unprepared as reason:
            pytest.skip(str(reason))
        words = [psql, services.POSTGRES_DATABASE, "--no-psqlrc", "--tuples-only", "--command", "select 40 + 2"]
        with services.running("postgres") as beside:
            for server in (variables, beside):
                assert queried(words, server) == ("42", "")
            assert "password authentication failed" in queried(words, variables | {"PGPASSWORD": "wrong"})[1]
    for server in (variables, beside):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(server["PGPORT"]))).close()


def queried(words: list[str], variables: dict[str, str]) -> tuple[str, str]:
    """Return what psql prints and what it complains of."""
    env = os.environ | {"LC_ALL": "C"} | variables
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    return done.stdout.strip(), done.stderr


def test_root_without_an_account_for_postgres_leaves_the_suite_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_account(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(services, "_postgres_programs", Path)
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwnam", no_account)
    with pytest.raises(preparation.Unprepared, match="no account 'postgres'"), services.running("postgres"):
        raise AssertionError


def test_a_run_that_reports_nothing_is_an_outcome(tmp_path: Path) -> None:
    suite = Suite("thing", "1", ("nowhere",), limit_s=60)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -SEGV $$\n")
    python.chmod(0o755)
    assert running.run(suite, "plain", python, tmp_path).outcomes == {outcomes.THE_RUN: "ended by SIGSEGV"}


def test_a_suite_whose_plain_run_dies_names_the_test(tmp_path: Path) -> None:
    dies = "def test_dies():\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    (tmp_path / "test_thing.py").write_text(f"def test_passes(): pass\n\n{dies}")
    suite = Suite("thing", "1", ("test_thing.py",), limit_s=60)
    with pytest.raises(preparation.Unprepared, match=r"ended by SIGKILL\): test_thing.py::test_dies"):
        trial.carry_out(suite, Path(sys.executable), tmp_path, lambda _: None)


@pytest.mark.parametrize(
    ("writes", "said"),
    [
        ("", "the plain run reports no outcomes (status 1, no report)"),
        ("<testsuite", "the plain run reports no outcomes (status 1, a report that cannot be read: unclosed token: "),
        ("<testsuite/>", "no test passes plainly (reported)"),
    ],
)
def test_a_suite_without_a_report_that_can_be_read_says_so(tmp_path: Path, writes: str, said: str) -> None:
    python = tmp_path / "python"
    write = 'for word; do case $word in --junitxml=*) printf %s "$REPORT" > "${word#*=}";; esac; done'
    python.write_text(f'#!/bin/sh\n[ -z "$REPORT" ] || {write}\necho the last line\nexit 1\n')
    python.chmod(0o755)
    suite = Suite("thing", "1", ("tests",), variables={"REPORT": writes})
    with pytest.raises(preparation.Unprepared) as raised:
        trial.carry_out(suite, python, tmp_path, lambda _: None)
    assert str(raised.value).startswith(said)
    assert str(raised.value).endswith("): the last line")


def test_a_suite_whose_plain_run_comes_to_no_end_is_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(suite: Suite, way: str, *_: object) -> running.Run:
        ended = "no end after 120 s" if way == "plain again" else "reported"
        return running.Run({"a": "passed", outcomes.THE_RUN: ended}, 0)

    monkeypatch.setattr(running, "run", run)
    suite = Suite("thing", "1", ("tests",))
    with pytest.raises(preparation.Unprepared, match="a plain run came to 'no end after 120 s'"):
        trial.carry_out(suite, tmp_path / "python", tmp_path, lambda _: None)


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        (["ended by SIGSEGV", "reported"], "did not happen again"),
        (["no end after 60 s", "ended by SIGSEGV"], "differs"),
    ],
)
def test_a_run_without_a_report_is_repeated_as_a_whole_and_is_one_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: list[str], verdict: str
) -> None:
    limits: list[float] = []
    patched = iter(ends)

    def run(suite: Suite, way: str, *_: object) -> running.Run:
        limits.append(suite.limit_s)
        ended = next(patched) if way == "unsnarl run --patch" else "reported"
        tests = {"a": "passed", "b": "passed"} if ended == "reported" else {}
        return running.Run({**tests, outcomes.THE_RUN: ended}, 0)

    monkeypatch.setattr(running, "run", run)
    made = trial.carry_out(Suite("thing", "1", ("tests",), limit_s=60), tmp_path, tmp_path, lambda _: None)
    assert [(one["test"], one["verdict"]) for one in made["differences"]] == [(outcomes.THE_RUN, verdict)]
    assert limits == [60, 60, 60, 60, 60 * trial.PATIENCE]


OFFLINE = """
import os, socket, subprocess, sys
from bench.crater import network
before = os.readlink("/proc/self/ns/net")
try:
    network.leave()
except OSError:
    sys.exit(77)
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname(), 5).close()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
    try:
        other.connect(("192.0.2.1", 9))  # sends nothing: the kernel only looks for a route
    except OSError:
        pass
    else:
        sys.exit("there is a route to another network")
child = subprocess.run(["readlink", "/proc/self/ns/net"], capture_output=True, text=True).stdout.strip()
sys.exit(child == before)
"""


def test_offline_leaves_loopback_alone_up_and_children_inherit_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode == 77:
        pytest.skip("no right to make a network namespace")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_result_names_the_wheel_that_was_tried_and_not_the_sources(tmp_path: Path) -> None:
    one, other = (tmp_path / name / "unsnarl-1.2.3-cp313-cp313-linux_x86_64.whl" for name in ("one", "other"))
    for wheel in (one, other):
        wheel.parent.mkdir()
        wheel.write_bytes(wheel.parent.name.encode())
    assert preparation.described(one).startswith("1.2.3 (sha256 7692c3ad3540bb80")
    assert preparation.described(one) != preparation.described(other)
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    made = result_of(Suite("thing", "1", ("tests",)), tmp_path / "cache", one, str(python), "3.13.0")
    assert made["unsnarl"] == preparation.described(one)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--only", "no_such_suite"], "there is no suite 'no_such_suite'"),
        (["--only", "janus,no-such-*"], "there is no suite 'no-such-*'"),
        (["--jobs", "0"], "takes a number from 1 to 64, not '0'"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--only", "janus", "--python", "/nowhere"], "there is no interpreter '/nowhere'"),
        (["--only", "janus", "--wheel", "/nowhere"], "there is no wheel of unsnarl for CPython"),
    ],
)
def test_bad_input_gets_one_clear_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bench.crater.__main__.CACHE", tmp_path)
    try:
        status: object = main(words)
    except SystemExit as end:
        status = end.code
    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert shown.err.startswith("error: ")
    assert said in shown.err
    assert shown.err.count("\n") == 2


def test_a_source_distribution_without_the_tests_is_said_to_have_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def environment(*_: object) -> Path:
        return tmp_path

    monkeypatch.setattr(preparation, "_environment", environment)
    tree = tmp_path / "source-1"
    tree.mkdir()
    suite = Suite("thing", "1", ("tests", "--quick"))
    with pytest.raises(preparation.Unprepared, match=r"its source distribution has no tests$"):
        preparation.prepare(suite, tmp_path, tmp_path, "python")
    (tree / "tests").mkdir()
    assert preparation.prepare(suite, tmp_path, tmp_path, "python") == (tmp_path, tree)
