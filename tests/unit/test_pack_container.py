"""The pack format: packs are read back, and damaged, foreign or truncated packs refused."""

import marshal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unsnarl.pack import container

MODULES = {
    "a": ((False, "/x/a.py", 1, 2, b"a", "c"), marshal.dumps(compile("A = 1", "/x/a.py", "exec"))),
    "b": ((True, "/x/b/__init__.py", 3, 4, b"b", "c"), marshal.dumps(compile("B = 2", "/x/b/__init__.py", "exec"))),
    "c": ((False, "/x/c.so", 5, 6, b"", "x"), b""),
}
DATA = container.write(MODULES)


def test_a_pack_is_read_back() -> None:
    entries, area, *_ = container.read(memoryview(DATA))
    assert list(entries) == ["a", "b", "c"]
    scope: dict[str, object] = {}
    exec(container.code_of(entries["b"], area), scope)
    assert scope["B"] == 2
    assert entries["c"][container.KIND] == "x"


def touch(data: bytes) -> None:
    """Read everything in a pack."""
    entries, area, *_ = container.read(memoryview(data))
    for entry in entries.values():
        if entry[container.KIND] == "c":
            container.code_of(entry, area)


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_any_changed_byte_is_noticed(at: int, change: int) -> None:
    damaged = bytearray(DATA)
    damaged[at] ^= change
    with pytest.raises(container.BadPack):
        touch(bytes(damaged))


@given(st.integers(0, len(DATA) - 1))
def test_a_cut_pack_is_noticed(length: int) -> None:
    with pytest.raises(container.BadPack):
        touch(DATA[:length])


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_pack(data: bytes) -> None:
    with pytest.raises(container.BadPack):
        container.read(memoryview(data))
