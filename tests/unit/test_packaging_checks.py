"""What ``scripts/check_packages.py`` says of native files that ask for more than the wheel's name promises."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import check_packages
import pytest
from distribution import native_file
from distribution.native_file import NativeFile

READELF = """
  Machine:                           AArch64
  [29] .debug_line       PROGBITS        0000000000000000 8f4cee 09d0dc 00      0   0  1
  INTERP         0x000318 0x0000000000000318 0x0000000000000318 0x00001c 0x00001c R   0x1
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libgcc_s.so.1]
  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 4
  0x0020:   Name: GLIBC_2.17  Flags: none  Version: 3
  0x0030:   Name: GCC_3.0  Flags: none  Version: 2
     4: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND sem_post@GLIBC_2.17 (4)
     5: 0000000000000000     0 FUNC    GLOBAL DEFAULT  UND sem_clockwait
     6: 0000000000000000     0 NOTYPE  WEAK   DEFAULT  UND statx
     7: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND PyObject_Call
     8: 0000000000000000     0 NOTYPE  GLOBAL DEFAULT  UND _Py_IsFinalizing
     9: 0000000000084210    21 FUNC    GLOBAL DEFAULT   13 PyInit__native
"""

GOOD = NativeFile(
    machine="x86_64",
    needed=frozenset({"libc.so.6", "libgcc_s.so.1"}),
    newest_glibc=(2, 17),
    unversioned=frozenset(),
    is_static=False,
    has_debug_sections=False,
    size_bytes=2_000_000,
)


def test_readelf_is_understood() -> None:
    found = native_file.parse(READELF, 10)
    assert found == NativeFile(
        machine="aarch64",
        needed=frozenset({"libc.so.6", "libgcc_s.so.1"}),
        newest_glibc=(2, 17),
        unversioned=frozenset({"sem_clockwait"}),
        is_static=False,
        has_debug_sections=True,
        size_bytes=10,
    )


def test_what_readelf_cannot_read_is_no_native_file() -> None:
    with pytest.raises(ValueError, match="not an ELF file"):
        native_file.parse("readelf: Error: Not an ELF file", 10)


@pytest.mark.parametrize(
    ("extension", "platform", "complaint"),
    [
        pytest.param(GOOD, "manylinux_2_17_x86_64", None, id="good"),
        pytest.param(GOOD, "manylinux_2_12_x86_64", "needs glibc 2.17", id="glibc"),
        pytest.param(GOOD, "manylinux_2_17_aarch64", "is for x86_64", id="machine"),
        pytest.param(GOOD, "musllinux_1_2_x86_64", "needs libc.so.6", id="library"),
        pytest.param(
            replace(GOOD, needed=frozenset({"libc.so.6"})), "manylinux_2_17_x86_64", "unwinder", id="unwinder"
        ),
        pytest.param(
            replace(GOOD, unversioned=frozenset({"sem_clockwait"})), "manylinux_2_17_x86_64", "sem_clockwait", id="name"
        ),
        pytest.param(
            replace(GOOD, needed=frozenset({"libc.so"}), unversioned=frozenset({"sem_post"})),
            "musllinux_1_2_x86_64",
            None,
            id="musl",
        ),
        pytest.param(replace(GOOD, has_debug_sections=True), "linux_x86_64", "debug information", id="debug"),
    ],
)
def test_a_broken_promise_is_named(extension: NativeFile, platform: str, complaint: str | None) -> None:
    found = check_packages.extension_complaints(extension, platform)
    assert (complaint is None) == (not found)
    assert complaint is None or complaint in found[0]


@pytest.mark.parametrize(
    ("wheel", "extension", "fits"),
    [
        ("unsnarl-1-cp313-cp313-linux_x86_64.whl", "unsnarl/_native.cpython-313-x86_64-linux-gnu.so", True),
        ("unsnarl-1-cp314-cp314t-linux_x86_64.whl", "unsnarl/_native.cpython-314t-x86_64-linux-gnu.so", True),
        ("unsnarl-1-cp312-cp312-linux_x86_64.whl", "unsnarl/_native.cpython-313-x86_64-linux-gnu.so", False),
        ("unsnarl-1-cp311-abi3-linux_x86_64.whl", "unsnarl/_native.abi3.so", False),
    ],
)
def test_a_wheel_is_named_for_the_interpreter_of_its_extension(wheel: str, extension: str, fits: bool) -> None:
    assert (not check_packages.wrong_tag(Path(wheel), [extension])) == fits


@pytest.mark.skipif(shutil.which("readelf") is None, reason="readelf is not installed, as on a user's machine")
def test_this_interpreters_extension_can_be_read() -> None:
    import unsnarl._native

    found = native_file.read(Path(unsnarl._native.__file__ or ""))
    assert found.needed
    assert not found.is_static
    assert not found.has_debug_sections, f"debug information is kept apart, in {sys.executable}'s installation too"
