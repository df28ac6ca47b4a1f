"""The account: learning waits until calls pay for it, and says what it has spent and saved."""

from typing import TYPE_CHECKING

from tests.integration.waiting import until

if TYPE_CHECKING:
    from tests.integration.conftest import Rig

HELLO = "import sys, json\nprint('warm' if '_unsnarl_warm' in sys.modules else 'plain')\n"


def calls(rig: "Rig") -> str:
    """Return what the clients have counted."""
    return "".join(path.read_text() for path in rig.house.glob("*.calls"))


def test_what_a_server_loads_for_itself_is_no_module_of_a_run(rig: "Rig") -> None:
    script = rig.script("hello", HELLO)
    rig.start(script)
    rig.verb("stop")
    assert list(rig.house.glob("*.ledger"))
    rig.start(script)  # a server that reads the account, once its imports are made
    for _ in range(3):
        assert rig.served(script).stdout == b"warm\n"
    assert not [path.read_text() for path in rig.house.glob("*.wanted")]


def test_modules_of_earlier_runs_are_not_learned_with_a_variable_set(rig: "Rig") -> None:
    (rig.directory / "bin" / "mod.py").write_text("import os\nif os.environ.get('DEBUG'):\n    os.getppid()\n")
    script = rig.script("hello", f"import mod\n{HELLO}")
    rig.start(script)
    [facts] = rig.house.glob("*.facts")
    facts.with_suffix(".news").touch()  # as a server leaves it for its successor
    plain_env, rig.env = rig.env, rig.env | {"DEBUG": "1"}
    assert rig.verb("start", "--", script).returncode == 1
    rig.env = plain_env
    assert rig.verb("why", script).stdout.startswith(f"{script} runs warm".encode())
    rig.verb("stop")
    rig.start(script)
    assert rig.served(script).stdout == b"warm\n"
    assert not facts.with_suffix(".news").exists()


def test_few_calls_start_nothing_in_the_background(rig: "Rig") -> None:
    del rig.env["UNSNARL_WARM_SPEND"]
    script = rig.script("hello", HELLO)
    for _ in range(5):
        assert rig.warm(script).stdout == b"plain\n"
    assert calls(rig).startswith("unsnarl-calls 2 5\n")
    # A start opens its lock and its log before the call's own command begins.
    assert not list(rig.house.glob("*.lock"))
    assert not list(rig.house.glob("*.log"))


def test_a_key_that_does_not_come_back_starts_nothing(rig: "Rig") -> None:
    rig.env["UNSNARL_WARM_SPEND"] = "100000"
    script = rig.script("hello", HELLO)
    for zone in range(4):
        rig.env["TZ"] = f"UTC{zone}"
        assert rig.warm(script).stdout == b"plain\n"
    assert not list(rig.house.glob("*.lock"))
    assert rig.warm(script).stdout == b"plain\n"
    assert len(list(rig.house.glob("*.lock"))) == 1


def test_why_says_what_calls_still_have_to_pay(rig: "Rig") -> None:
    del rig.env["UNSNARL_WARM_SPEND"]
    script = rig.script("hello", HELLO)
    assert b"nothing is known" in rig.verb("why", script).stderr
    for _ in range(3):
        rig.warm(script)
    [line] = rig.verb("why", script, "--argument").stdout.decode().splitlines()
    assert line.startswith(f"{script} --argument runs plainly: it is not learned yet, since its calls have not paid")
    assert "3 so far, about 57 more do" in line
    assert f"`unsnarl warm start -- {script}`" in line
    assert f"`unsnarl warm learn -- {script}`" in line
    assert "UNSNARL_WARM_SPEND=any" in line
    assert calls(rig).startswith("unsnarl-calls 2 3\n")  # the question is no call
    rig.env["UNSNARL_WARM_SPEND"] = "0"
    assert b"no number of them does" in rig.verb("why", script).stdout
    rig.env["UNSNARL_WARM_FROZEN"] = "1"
    assert b"not learned, and with UNSNARL_WARM_FROZEN set it never is" in rig.verb("why", script).stdout


def test_why_says_what_a_learned_command_still_has_to_pay(rig: "Rig") -> None:
    del rig.env["UNSNARL_WARM_SPEND"]
    script = rig.script("hello", HELLO)
    assert rig.verb("learn", script).returncode == 0
    until(lambda: not rig.verb("status").stdout.count(b"server  "))
    assert rig.warm(script).stdout == b"plain\n"
    last = rig.verb("why", script).stdout.decode().splitlines()[-1]
    assert "its calls have not paid for one, 1 so far, about " in last
    assert f"`unsnarl warm start -- {script}` starts a server now" in last


def test_why_says_how_many_values_split_the_servers_of_a_command(rig: "Rig") -> None:
    del rig.env["UNSNARL_WARM_SPEND"]
    reads = "import os\nSUM = sum(os.environ.get('JOB', '').encode())\n"  # so it is not only kept
    (rig.directory / "bin" / "mod.py").write_text(reads)
    script = rig.script("hello", f"import mod\n{HELLO}")
    rig.env["JOB"] = "none"
    assert rig.verb("learn", script).returncode == 0
    for job in range(6):
        rig.env["JOB"] = f"secret{job // 2}"
        rig.warm(script)
    rows = rig.verb("why", script).stdout.decode().splitlines()
    [row] = [row for row in rows if " values in " in row]
    assert row.startswith("  JOB had 3 values in 6 calls that ran plainly, about 2 calls each: ")
    assert row.endswith("add it to the names in UNSNARL_WARM_IGNORE")
    assert "secret" not in calls(rig)


def test_enough_calls_pay_for_a_server(rig: "Rig") -> None:
    rig.env["UNSNARL_WARM_SPEND"] = "300"  # two calls pay for six
    script = rig.script("hello", HELLO)
    assert rig.warm(script).stdout == b"plain\n"
    assert not list(rig.house.glob("*.lock"))
    assert rig.warm(script).stdout == b"plain\n"
    assert list(rig.house.glob("*.lock"))
    until(lambda: rig.warm(script).stdout == b"warm\n")


def test_status_shows_what_a_server_has_spent_and_saved(rig: "Rig") -> None:
    script = rig.script("hello", HELLO)
    rig.start(script)
    assert "spent" not in ledger(rig)
    for _ in range(3):
        assert rig.served(script).stdout == b"warm\n"
    assert rig.verb("stop").returncode == 0
    # A server notes the rest once its last spare has ended.
    until(lambda: b"calls served" in rig.verb("status").stdout and "saved" in ledger(rig))
    line = next(line for line in rig.verb("status").stdout.decode().splitlines() if line.startswith("account"))
    assert f"account {script}  3 calls served  saved " in line
    assert "spent 0.0 s  asked for " in line  # `warm start` is not charged
    assert "asked for 0.0 s" not in line


def ledger(rig: "Rig") -> str:
    """Return the ledgers."""
    return "".join(path.read_text() for path in rig.house.glob("*.ledger"))


def test_a_frozen_call_serves_what_was_learned_and_learns_nothing(rig: "Rig") -> None:
    script, other = rig.script("hello", HELLO), rig.script("other", HELLO)
    assert rig.verb("learn", script).returncode == 0
    until(lambda: not rig.verb("status").stdout.count(b"server  "))
    facts = {path.name for path in rig.house.glob("*.facts")}
    assert len(facts) == 1
    assert rig.verb("run", "--frozen", "--", other).stdout == b"plain\n"
    assert calls(rig) == ""
    until(lambda: rig.verb("run", "--frozen", script).stdout == b"warm\n")
    assert {path.name for path in rig.house.glob("*.facts")} == facts
    rig.env["UNSNARL_WARM_FROZEN"] = "1"
    assert rig.warm(other).stdout == b"plain\n"
    assert {path.name for path in rig.house.glob("*.facts")} == facts
