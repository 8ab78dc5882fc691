"""Object files: what they define, and that one whose tables lead out of it is refused."""

from __future__ import annotations

import struct

import pytest

from tilewright.codegen.elf import ElfError, functions_of
from tilewright.codegen.native import compile_object
from tilewright.target import Target

TEXT = """
@table = internal constant [4 x i64] [i64 1, i64 2, i64 3, i64 4]
define i64 @first(i64 %i) {
  %place = getelementptr [4 x i64], ptr @table, i64 0, i64 %i
  %found = load i64, ptr %place
  ret i64 %found
}
define internal void @inner(ptr %p) noinline {
  store volatile i64 1, ptr %p
  ret void
}
define void @second(ptr %p) {
  call void @inner(ptr %p)
  call void @free(ptr %p)
  ret void
}
declare void @free(ptr)
"""
SECTION_BYTES = 64


@pytest.fixture(scope="module")
def content() -> bytes:
    return compile_object(TEXT, Target.native())


@pytest.mark.parametrize("target", ["llvm -mcpu=native", "aarch64", "riscv64"])
def test_the_functions_of_an_object_file(target: str) -> None:
    assert functions_of(compile_object(TEXT, Target.parse(target))) == {"first", "second", "inner"}


def test_any_cut_is_found(content: bytes) -> None:
    for length in range(len(content)):
        with pytest.raises(ElfError):
            functions_of(content[:length])


def section_table(content: bytes) -> tuple[int, int]:
    (begin,) = struct.unpack_from("<Q", content, 40)
    (count,) = struct.unpack_from("<H", content, 60)
    return begin, count


def sections_of_type(content: bytes, wanted: int) -> list[int]:
    """Where the entries of the sections of that type begin."""
    begin, count = section_table(content)
    places = [begin + number * SECTION_BYTES for number in range(count)]
    return [place for place in places if struct.unpack_from("<I", content, place + 4)[0] == wanted]


def changed(content: bytes, place: int, layout: str, value: int) -> bytes:
    found = bytearray(content)
    struct.pack_into(layout, found, place, value)
    return bytes(found)


SYMBOLS, RELOCATIONS = 2, 4
NAME, OFFSET, SIZE, LINK, INFO = (0, "<I"), (24, "<Q"), (32, "<Q"), (40, "<I"), (44, "<I")
ALIGNMENT, ENTRY_SIZE = (48, "<Q"), (56, "<Q")


@pytest.mark.parametrize(
    ("type_", "entry", "value", "message"),
    [
        (SYMBOLS, NAME, 1 << 30, "the name of a section has no end"),
        (SYMBOLS, ALIGNMENT, 3, "has an alignment of 3"),
        (SYMBOLS, OFFSET, 1 << 40, "section .* is not in it"),
        (SYMBOLS, SIZE, 2**64 - 1, "section .* is not in it"),
        (SYMBOLS, LINK, 999, "refers to section 999"),
        (SYMBOLS, LINK, 0, "refers to section 0"),
        (SYMBOLS, ENTRY_SIZE, 0, "has entries of 0, not 24"),
        (RELOCATIONS, INFO, 0, "relocations are in section 0, of which nothing is loaded"),
        (RELOCATIONS, LINK, 0, "refers to section 0"),
        (RELOCATIONS, INFO, 2**32 - 1, "refers to section 4294967295"),
        (RELOCATIONS, ENTRY_SIZE, 8, "has entries of 8, not 24"),
    ],
)
def test_a_table_that_leads_out_of_the_file(
    content: bytes, type_: int, entry: tuple[int, str], value: int, message: str
) -> None:
    place = sections_of_type(content, type_)[0]
    with pytest.raises(ElfError, match=message):
        functions_of(changed(content, place + entry[0], entry[1], value))


@pytest.mark.parametrize(
    ("type_", "offset", "layout", "message"),
    [
        (RELOCATIONS, 0, "<Q", "a relocation at"),
        (RELOCATIONS, 12, "<I", "of symbol 4294967295 of"),
        (SYMBOLS, 24, "<I", "the name of a symbol has no end"),
        (SYMBOLS, 2 * 24 + 16, "<Q", "ends behind section"),
    ],
)
def test_an_entry_that_leads_out_of_its_section(
    content: bytes, type_: int, offset: int, layout: str, message: str
) -> None:
    begin = struct.unpack_from("<Q", content, sections_of_type(content, type_)[0] + OFFSET[0])[0]
    with pytest.raises(ElfError, match=message):
        functions_of(changed(content, begin + offset, layout, 2 ** (8 * struct.calcsize(layout)) - 1))


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"MZ" + bytes(100), b"\x7fELF" + bytes(100)])
def test_what_is_no_object_file(content: bytes) -> None:
    with pytest.raises(ElfError):
        functions_of(content)
