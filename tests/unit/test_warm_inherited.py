"""The data that a worker inherits is frozen, and no part of it is the server."""

from typing import Any

import pytest

from unsnarl.warm.worker.inherited import Imported, Inherited

KINDS = [Imported, Inherited]


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_has_to_be_given(kind: Any) -> None:
    fields = dict.fromkeys(kind.__annotations__, None)
    assert kind(**fields) == kind(**fields)
    for name in fields:
        with pytest.raises(TypeError):
            kind(**{other: None for other in fields if other != name})


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_can_be_assigned(kind: Any) -> None:
    inherited = kind(**dict.fromkeys(kind.__annotations__, None))
    for name in kind.__annotations__:
        with pytest.raises(AttributeError):
            setattr(inherited, name, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_no_field_is_of_a_servers_type(kind: Any) -> None:
    assert not [annotation for annotation in kind.__annotations__.values() if "Server" in annotation]
