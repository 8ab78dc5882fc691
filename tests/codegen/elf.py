"""Reads what tests ask of an ELF object file: its machine, and the symbols that it leaves to others."""

from __future__ import annotations

import struct

MACHINE = {"x86_64": 62, "aarch64": 183, "riscv64": 243}

_SYMBOL_TABLE = 2
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")


def machine(object_code: bytes) -> int:
    assert object_code[:6] == b"\x7fELF\x02\x01", "64 bits, little-endian"
    return int.from_bytes(object_code[18:20], "little")


def undefined_symbols(object_code: bytes) -> set[str]:
    """The names that the object uses and does not define."""
    (offset,) = struct.unpack_from("<Q", object_code, 40)
    size, count = struct.unpack_from("<HH", object_code, 58)
    sections = [_SECTION_HEADER.unpack_from(object_code, offset + n * size) for n in range(count)]
    names: set[str] = set()
    for _, kind, _, _, begin, length, link, *_ in sections:
        if kind != _SYMBOL_TABLE:
            continue
        strings = sections[link][4]
        for name, _, _, section, _, _ in _SYMBOL.iter_unpack(object_code[begin : begin + length]):
            if name and section == 0:
                end = object_code.index(b"\0", strings + name)
                names.add(object_code[strings + name : end].decode())
    return names
