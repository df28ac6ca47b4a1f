"""Values that imports make of chance and of the moment differ in each run; similar constants are left alone."""

from __future__ import annotations

import re
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.integration.waiting import until
from unsnarl.warm import facts as facts_of
from unsnarl.warm.managing import learner
from unsnarl.warm.renewals import Recipe, Renewal

if TYPE_CHECKING:
    from tests.integration.conftest import Rig


def script_of(rig: Rig, module: str) -> str:
    """Write a command that prints its module's ``VALUE``, and whether it is warm."""
    (rig.directory / "bin" / "mod.py").write_text(module)
    return rig.script("who", "import sys, mod\nprint(mod.VALUE, '_unsnarl_warm' in sys.modules)\n")


def test_chance_in_other_circumstances_only_is_noticed_there(rig: Rig) -> None:
    script = script_of(rig, "import os, uuid\nVALUE = uuid.uuid4().hex if os.environ.get('TRACE') else None\n")
    rig.start(script)
    assert rig.served(script).stdout == b"None True\n"
    env = rig.env | {"TRACE": "1"}
    rig.start(script, env=env)
    seen = [rig.served(script, env=env).stdout.split() for _ in range(3)]
    assert [is_warm for _, is_warm in seen] == [b"True"] * 3
    assert len({value for value, _ in seen}) == 3
    for value, _ in seen:
        identifier = uuid.UUID(value.decode())
        assert (identifier.version, identifier.variant) == (4, uuid.RFC_4122)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("def name(pid=os.getpid()): return pid\n", b"a tuple that it makes"),
        ("def make(pid): return lambda: pid\nname = make(os.getpid())\n", b"a cell that it makes"),
        ("import functools\nname = functools.partial(print, os.getpid())\n", b"a tuple that it makes"),
        ("STATE = {'process': {'number': os.getpid()}}\n", b"a dict that it makes"),
        (
            "import random, string\nSTATE = {'id': [os.getpid(), random.choice(string.ascii_letters)]}\n",
            b"a list that it makes",
        ),
    ],
    ids=["default", "closure", "partial", "nested", "beside a letter by chance"],
)
def test_number_of_the_process_in_other_places_is_not_kept(rig: Rig, text: str, place: bytes) -> None:
    script = script_of(rig, f"import os\n{text}VALUE = 1\n")
    assert rig.verb("start", "--", script).returncode == 1
    assert place + b" while it is imported keeps the number of its process" in rig.verb("why", script).stdout
    assert rig.warm(script).stdout == b"1 False\n"


def test_number_by_which_an_instance_notices_a_fork_is_no_reason(rig: Rig) -> None:
    text = "import os\nclass Pool:\n    def __init__(self): self.pid = os.getpid()\n"
    text += "POOL = Pool()\nVALUE = vars(POOL)['pid'] > 0\n"
    script = script_of(rig, text)
    rig.start(script)
    assert rig.served(script).stdout == b"True True\n"


def test_uuid_object_is_another_in_each_run(rig: Rig) -> None:
    script_of(rig, "import uuid\nVALUE = ID = uuid.uuid4()\nFIXED = uuid.UUID(int=7)\n")
    script = rig.script("who", "import sys, mod\nprint(mod.VALUE is mod.ID, mod.FIXED.int, mod.VALUE)\n")
    rig.start(script)
    one, other = (rig.served(script).stdout for _ in range(2))
    assert one != other
    assert re.fullmatch(rb"True 7 [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f-]{16}\n", one)
    assert b"set again in each run: mod.ID (UUID)" in rig.verb("why", script).stdout


def test_uuid_made_of_the_time_is_not_kept(rig: Rig) -> None:
    script = script_of(rig, "import uuid\nID = uuid.uuid1()\nVALUE = 1\n")
    rig.start(script)
    assert b"mod.ID differs from run to run" in rig.verb("why", script).stdout


def test_the_order_in_a_set_means_nothing(rig: Rig) -> None:
    """With colliding hashes, here addresses of classes, the order is that of insertion."""
    text = "import random\nitems = [str(n) for n in range(200)]\nrandom.shuffle(items)\n"
    text += "found = frozenset(items)\ndel items\nVALUE = 1\n"
    script = script_of(rig, text)
    rig.start(script)
    assert rig.served(script).stdout == b"1 True\n"


def test_a_proxy_is_not_asked_for_its_class(rig: Rig) -> None:
    """Django's settings then read the user's modules, and fail if there are none."""
    script = script_of(rig, "class Lazy:\n    __class__ = property(lambda self: 1 / 0)\nlazy = Lazy()\nVALUE = 1\n")
    rig.start(script)
    assert rig.served(script).stdout == b"1 True\n"


def test_a_module_may_be_left_out_for_two_reasons(rig: Rig) -> None:
    dated = "import time\nONE = time.strftime('%Y-%m-%d')\nTWO = time.strftime('%d.%m.%Y')\n"
    (rig.directory / "bin" / "dated.py").write_text(dated)
    (rig.directory / "bin" / "fine.py").write_text("")
    (rig.directory / "bin" / "mod.py").write_text("VALUE = 1\n")
    shown = "print([name in sys.modules for name in ('fine', 'dated')])\n"
    script = rig.script("who", f"import sys, mod\n{shown}for name in sys.argv[1:]: __import__(name)\n")
    rig.start(script)
    assert rig.served(script, "fine", "dated").stdout == b"[False, False]\n"
    until(lambda: rig.warm(script).stdout == b"[True, False]\n")
    said = rig.verb("why", script).stdout
    assert b"dated is not imported ahead: dated." in said
    assert b"could not be watched" not in said


def test_a_number_that_fits_into_one_clock_by_chance_is_none() -> None:
    clock = Renewal("logging", "_startTime", Recipe("time_ns"))
    constant = Renewal("asyncio.constants", "TIMEOUT", Recipe("monotonic"))
    looks = [facts_of.Facts() for _ in range(3)]
    looks[0].renewals, looks[1].renewals, looks[2].renewals = [constant, clock], [], [clock]
    assert learner._of_most(looks[:1]) == [constant, clock]
    assert learner._of_most(looks) == [clock]


@pytest.mark.parametrize("made", ["frozenset([id(ONE), id(TWO)])", "(id(ONE), 1)", "[id(ONE)]", "{'one': id(ONE)}"])
def test_addresses_in_containers_are_those_of_the_server_and_all_workers(rig: Rig, made: str) -> None:
    script = script_of(rig, f"ONE, TWO = object(), object()\nKEPT = {made}\nVALUE = id(ONE) in (*KEPT, id(ONE))\n")
    rig.start(script)
    assert rig.served(script).stdout == b"True True\n"


def test_an_object_in_the_place_of_a_module_needs_no_globals(rig: Rig) -> None:
    text = "import sys, types\nclass Alias(types.ModuleType):\n    def __getattribute__(self, name): return None\n"
    text += "class Bare:\n    __slots__ = ()\n"
    script = script_of(
        rig, text + "sys.modules['mod.alias'], sys.modules['mod.bare'] = Alias('x'), Bare()\nVALUE = 1\n"
    )
    rig.start(script)
    assert rig.served(script).stdout == b"1 True\n"
