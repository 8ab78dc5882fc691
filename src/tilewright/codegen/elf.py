"""Whether an object file is whole: its tables lie in it, and refer to what is there.

LLVM takes an object file at its word: what points outside of the file may end the process. So a file that somebody else
may have written is looked at here first. What the code does when it runs, nobody can tell: it has to be trusted.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

_HEADER = struct.Struct("<4sBB10xH22xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_MAGIC, _64_BITS, _LITTLE_ENDIAN, _RELOCATABLE = b"\x7fELF", 2, 1, 1
_SYMBOLS, _STRINGS, _RELOCATIONS, _NO_BITS = 2, 3, 4, 8
_FIRST_RESERVED = 0xFF00  # from here on, what stands for a section is none
_FUNCTION = 2
_IN_MEMORY = 2  # of the flags of a section
_ALIGNMENTS = frozenset(1 << n for n in range(13))


class ElfError(ValueError):
    """What is wrong in an object file."""


class _Section(NamedTuple):
    name: int
    type: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def functions_of(content: bytes) -> frozenset[str]:
    """The functions that an object file of 64 bits defines; an ElfError says why it is none, or not a whole one."""
    sections = _sections(content)
    names: set[str] = set()
    for section in sections:
        if section.type == _SYMBOLS:
            names.update(_functions(content, sections, section))
        elif section.type == _RELOCATIONS:
            _check_relocations(content, sections, section)
    return frozenset(names)


def _sections(content: bytes) -> list[_Section]:
    if len(content) < _HEADER.size:
        raise ElfError(f"its {len(content)} bytes are fewer than a header has")
    magic, width, order, kind, table, entry_size, count, names = _HEADER.unpack_from(content)
    if (magic, width, order, kind) != (_MAGIC, _64_BITS, _LITTLE_ENDIAN, _RELOCATABLE):
        raise ElfError(f"it begins with {content[:8]!r}")
    if entry_size != _SECTION.size or table + count * _SECTION.size > len(content):
        raise ElfError(f"its table of {count} sections is not in it")
    sections = [_Section(*_SECTION.unpack_from(content, table + i * _SECTION.size)) for i in range(count)]
    for number, section in enumerate(sections):
        if section.alignment not in _ALIGNMENTS and (number or section.type):
            raise ElfError(f"section {number} has an alignment of {section.alignment}")
        if section.type != _NO_BITS and section.offset + section.size > len(content):
            raise ElfError(f"section {number} is not in it")
    text = _content(content, _linked(sections, names, _STRINGS))
    if any(text.find(b"\0", section.name) < 0 for section in sections):
        raise ElfError("the name of a section has no end")
    return sections


def _functions(content: bytes, sections: Sequence[_Section], table: _Section) -> list[str]:
    text = _content(content, _linked(sections, table.link, _STRINGS))
    found = []
    for symbol in _symbols(content, table):
        if symbol.section >= len(sections) and symbol.section < _FIRST_RESERVED:
            raise ElfError(f"a symbol is in section {symbol.section} of {len(sections)}")
        end = text.find(b"\0", symbol.name)
        if end < 0:
            raise ElfError("the name of a symbol has no end")
        if symbol.section not in range(1, len(sections)):
            continue
        section = sections[symbol.section]
        if symbol.value + symbol.size > section.size:
            raise ElfError(f"a symbol ends behind section {symbol.section}")
        if symbol.info & 15 == _FUNCTION:
            found.append(text[symbol.name : end].decode(errors="replace"))
    return found


def _check_relocations(content: bytes, sections: Sequence[_Section], table: _Section) -> None:
    symbols = _symbols(content, _linked(sections, table.link, _SYMBOLS))
    target = _linked(sections, table.info)
    if target.type == _NO_BITS or not target.flags & _IN_MEMORY:
        raise ElfError(f"relocations are in section {table.info}, of which nothing is loaded")
    for place, info, _ in _entries(content, table, _RELOCATION):
        if place >= target.size or info >> 32 >= len(symbols):
            raise ElfError(
                f"a relocation at {place} of {target.size} bytes is of symbol {info >> 32} of {len(symbols)}"
            )
        section = symbols[info >> 32].section
        if section in range(1, len(sections)) and not sections[section].flags & _IN_MEMORY:
            raise ElfError(f"a relocation at {place} is of section {section}, of which nothing is loaded")


def _symbols(content: bytes, table: _Section) -> list[_Symbol]:
    return [_Symbol(*entry) for entry in _entries(content, table, _SYMBOL)]


def _entries(content: bytes, table: _Section, entry: struct.Struct) -> list[tuple[int, ...]]:
    if table.entry_size != entry.size or table.size % entry.size:
        raise ElfError(f"a table of {table.size} bytes has entries of {table.entry_size}, not {entry.size}")
    return list(entry.iter_unpack(_content(content, table)))


def _content(content: bytes, section: _Section) -> bytes:
    return content[section.offset : section.offset + section.size]


def _linked(sections: Sequence[_Section], number: int, type_: int | None = None) -> _Section:
    if number >= len(sections) or type_ not in (None, sections[number].type):
        raise ElfError(f"a table refers to section {number}, which is not what it has to be")
    return sections[number]
