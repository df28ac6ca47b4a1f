"""The checker of histories finds what may not be, so that its silence about a history means something."""

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.history import NEVER_NS, build_checker, linearizable, operations


def line(op: str, fence: int, begin: int, end: int, **facts: object) -> dict[str, Any]:
    return {"op": op, "fence": fence, "begin": begin, "end": end, "client": fence, **facts}


FIRST = [line("acquire", 1, 0, 1), line("check", 1, 2, 3), line("write", 1, 4, 5, accepted=True)]
SECOND = [line("acquire", 2, 10, 11), line("write", 2, 12, 13, accepted=True), line("end", 2, 14, 15)]


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the checker, or skip the test."""
    found = build_checker(tmp_path_factory.mktemp("checker"))
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.mark.parametrize(
    ("history", "status"),
    [
        ([*FIRST, line("end", 1, 6, 7), *SECOND], 0),
        # Lost at a time that its holder does not know.
        ([*FIRST, line("end", 1, 2, 20), *SECOND, line("write", 1, 16, 17, accepted=False)], 0),
        # A killed client's last write may have been accepted.
        ([*FIRST, line("end", 1, 2, NEVER_NS), line("write", 1, 6, NEVER_NS), *SECOND], 0),
        # Two holders, since the first one still believed.
        ([*FIRST, line("check", 1, 16, 17), line("end", 1, 16, 18), *SECOND], 1),
        # The fence falls.
        ([*SECOND, line("acquire", 1, 20, 21), line("end", 1, 22, 23)], 1),
        # An older fence is accepted after a newer one.
        ([*FIRST, line("end", 1, 6, 7), *SECOND, line("write", 1, 16, 17, accepted=True)], 1),
        # One fence for two holds.
        ([*SECOND, line("acquire", 2, 20, 21), line("end", 2, 22, 23)], 1),
    ],
)
def test_porcupine_tells_right_from_wrong(checker: Path, history: list[dict[str, Any]], status: int) -> None:
    assert linearizable(checker, history)[0] == status


def test_what_a_killed_client_had_begun_has_no_end() -> None:
    log = [
        line("acquire", 1, 0, 1),
        line("check", 1, 2, 3),
        line("try", 1, 4, 4),
        line("write", 1, 4, 5, accepted=True),
        line("try", 1, 6, 6),
    ]
    found = operations(7, log)
    assert [(one["op"], one["end"]) for one in found] == [
        ("acquire", 1),
        ("check", 3),
        ("write", 5),
        ("write", NEVER_NS),
        ("end", NEVER_NS),
    ]
    assert found[-1]["begin"] == 2
    assert "accepted" not in found[3]
